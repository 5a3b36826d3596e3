"""Where an attempt goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.checkpoint.entries import Fence, Quarantine
from trackway_common.checkpoint.layout import checkpoint_prefix, parse_path
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.checkpoint.verify import Depth
from trackway_common.errors import CommandRejected, Fenced, Unavailable
from trackway_common.events import CheckpointRef

FILES = ["manifest.json", "rank/r00001.json", "shard/r00000-0.bin"]


def ref_of(run, entry):
    body = entry.body
    return CheckpointRef(
        run_id=run.run_id,
        step=body.step,
        epoch=body.epoch,
        nonce=body.nonce,
        manifest_digest=body.manifest_digest,
        slot=entry.slot,
    )


def key_of(run, entry, file):
    return f"{checkpoint_prefix(run.run_id, parse_path(entry.body.path))}/{file}"


def flip(run, entry, file):
    key = key_of(run, entry, file)
    data = bytearray(run.store.get(key))
    data[len(data) // 2] ^= 4
    run.store.put(key, data)


def resumed(run, epoch=2, **options):
    log = run.log(f"epoch {epoch}")
    return choose_resume_target(log, raise_fence(log, epoch), **options)


@pytest.fixture
def trained(run):
    raise_fence(run.log(), 1)
    entries = [run.save(10)]
    for step in (20, 30):
        entries.append(run.save(step, parent=ref_of(run, entries[-1])))
    run.entries = entries
    return run


def test_a_first_attempt_starts_at_step_zero(run):
    target = resumed(run, epoch=1)
    assert (target.checkpoint, target.manifest, target.passed_over) == (None, None, ())


def test_the_newest_commit_is_taken(trained):
    target = resumed(trained)
    assert target.checkpoint == ref_of(trained, trained.entries[2])
    assert target.manifest.samples_consumed == 30 * 32
    assert target.passed_over == ()


def test_bytes_without_a_commit_do_not_exist(trained):
    name = replace(parse_path(trained.entries[0].body.path), step=40, nonce="ffff")
    trained.write(name)
    assert resumed(trained).checkpoint.step == 30


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("kind", ["flipped", "truncated", "empty", "gone", "swapped"])
def test_damage_of_any_file_falls_back_to_the_parent(trained, file, kind):
    last, before = trained.entries[2], trained.entries[1]
    key = key_of(trained, last, file)
    data = trained.store.get(key)
    match kind:
        case "flipped":
            flip(trained, last, file)
        case "truncated":
            trained.store.put(key, data[:-1])
        case "empty":
            trained.store.put(key, b"")
        case "gone":
            trained.store.delete(key)
        case "swapped":
            trained.store.put(key, trained.store.get(key_of(trained, before, file)))
    target = resumed(trained)
    assert target.checkpoint == ref_of(trained, before)
    assert [passed.slot for passed in target.passed_over] == [last.slot]
    assert file.rpartition("/")[2] in target.passed_over[0].why
    state = trained.log().refresh()
    assert state.commits[last.slot].quarantined_why == target.passed_over[0].why
    assert state.restorable[0].slot == before.slot


def test_sizes_alone_do_not_see_a_flipped_bit(trained):
    flip(trained, trained.entries[2], "shard/r00000-0.bin")
    assert resumed(trained, depth=Depth.SIZES).checkpoint.step == 30
    assert resumed(trained, epoch=3, depth=Depth.HASHES).checkpoint.step == 20


def test_the_fall_back_follows_parents_not_steps(trained):
    """Step 25 went on from step 10 because 20 and 30 were bad in ways that no hash shows."""
    log = trained.log()
    raise_fence(log, 2)
    forked = trained.save(25, epoch=2, parent=ref_of(trained, trained.entries[0]))
    flip(trained, forked, "shard/r00000-0.bin")
    assert resumed(trained, epoch=3).checkpoint == ref_of(trained, trained.entries[0])


def test_when_the_parent_is_bad_too_the_next_newest_is_taken(trained):
    flip(trained, trained.entries[2], "manifest.json")
    flip(trained, trained.entries[1], "manifest.json")
    target = resumed(trained)
    assert target.checkpoint.step == 10
    assert [passed.slot for passed in target.passed_over] == [4, 3]


def test_when_all_are_bad_training_starts_at_step_zero(trained):
    for entry in trained.entries:
        flip(trained, entry, "manifest.json")
    target = resumed(trained)
    assert target.checkpoint is None
    assert len(target.passed_over) == 3
    assert resumed(trained, epoch=3).passed_over == (), "they are quarantined: nobody tries them again"


def test_a_parent_in_another_run_is_not_of_this_log(run):
    raise_fence(run.log(), 1)
    foreign = CheckpointRef(run_id="other", step=1, epoch=1, nonce="x", manifest_digest="sha256:x", slot=2)
    entry = run.save(10, parent=foreign)
    assert resumed(run).checkpoint.step == 10
    flip(run, entry, "manifest.json")
    assert resumed(run, epoch=3).checkpoint is None


def test_a_quarantined_commit_is_skipped(trained):
    trained.log().append(Quarantine(commit_slot=trained.entries[2].slot, why="diverged"))
    target = resumed(trained)
    assert target.checkpoint.step == 20
    assert target.passed_over == ()


def test_own_commits_are_above_the_fence(trained):
    log = trained.log()
    fence = raise_fence(log, 2)
    for step in range(31, 45):
        trained.save(step, epoch=2)
    assert choose_resume_target(log, fence).checkpoint.step == 30


def test_raising_the_same_fence_again_gives_the_same_target(trained):
    first = resumed(trained)
    assert resumed(trained) == first


def test_a_fenced_attempt_chooses_nothing(trained):
    log = trained.log()
    fence = raise_fence(log, 2)
    raise_fence(trained.log(), 3)
    with pytest.raises(Fenced, match="epoch 3"):
        choose_resume_target(log, fence)
    with pytest.raises(Fenced):
        raise_fence(trained.log(), 2)


def test_only_a_fence_may_be_resumed_from(trained):
    with pytest.raises(CommandRejected, match="is no fence"):
        choose_resume_target(trained.log(), trained.entries[0])


def test_a_store_that_can_not_be_read_quarantines_nothing(trained, monkeypatch):
    log = trained.log()
    fence = raise_fence(log, 2)

    def away(key, **_):
        raise Unavailable("stale handle")

    monkeypatch.setattr(trained.store, "size", away)
    with pytest.raises(Unavailable):
        choose_resume_target(log, fence)
    assert len(trained.log().refresh().restorable) == 3


def test_a_fence_is_an_entry(run):
    assert raise_fence(run.log(), 1).body == Fence(epoch=1)
