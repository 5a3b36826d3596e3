"""What a check of everything finds."""

from __future__ import annotations

import pytest
from trackway_common.checkpoint.entries import Fence, encode_entry
from trackway_common.checkpoint.fsck import fsck
from trackway_common.checkpoint.layout import CheckpointName, checkpoint_prefix, log_key, log_prefix, parse_path
from trackway_common.checkpoint.verify import Depth


@pytest.fixture
def trained(run):
    run.log().append(Fence(epoch=1))
    for step in (1, 2):
        run.save(step)
    return run


def test_a_whole_run_has_no_problems(trained):
    report = fsck(trained.log())
    assert report.ok
    assert (report.entries, report.verified, report.writing) == (3, (2, 3), ())


def test_an_empty_run_has_no_problems(run):
    assert fsck(run.log()).ok


def test_a_head_that_does_not_follow_is_found(trained):
    entry = trained.log().entry(3)
    forged = type(entry)(slot=3, at_ms=0, writer="w", token="t", body=entry.body, head=trained.log().entry(2).head)
    trained.store.put(log_key(trained.run_id, 3), encode_entry(forged))
    report = fsck(trained.log())
    assert "slot 3: its head does not follow" in report.problems[0]
    assert report.verified == (2,)


def test_every_problem_is_reported_at_once(trained):
    prefixes = [checkpoint_prefix(trained.run_id, parse_path(trained.log().entry(slot).body.path)) for slot in (2, 3)]
    trained.store.put(f"{prefixes[0]}/shard/r00000-0.bin", b"short")
    trained.store.delete(f"{prefixes[0]}/rank/r00001.json")
    trained.store.put(f"{prefixes[1]}/manifest.json", b"{}")
    trained.store.put(f"{log_prefix(trained.run_id)}/stray", b"")
    report = fsck(trained.log())
    assert len(report.problems) == 4
    for problem, part in zip(
        sorted(report.problems),
        ("slot 2: checkpoints/run-1/data/", "slot 2: shard/r00000-0.bin", "slot 3: ", "log/stray"),
        strict=True,
    ):
        assert part in problem
    assert report.verified == ()


def test_a_gap_is_found(trained):
    trained.save(3)
    trained.store.delete(log_key(trained.run_id, 3))
    problems = fsck(trained.log()).problems
    assert "slot 3 is missing" in problems[0]


def test_saves_in_progress_are_listed_not_blamed(trained):
    name = CheckpointName(step=3, epoch=1, nonce="abcd")
    trained.write(name)
    report = fsck(trained.log(), depth=Depth.SIZES)
    assert report.ok
    assert report.writing == (str(name),)
