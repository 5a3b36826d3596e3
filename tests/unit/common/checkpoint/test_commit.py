"""From receipts to a commit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.checkpoint.commit import commit_checkpoint
from trackway_common.checkpoint.entries import Fence
from trackway_common.checkpoint.json_codec import encode
from trackway_common.checkpoint.layout import CheckpointName, manifest_key, receipt_key
from trackway_common.checkpoint.manifest import Manifest, decode_manifest, encode_manifest, load_manifest
from trackway_common.checkpoint.receipt import decode_receipt, encode_receipt, read_receipt
from trackway_common.checkpoint.records import CursorRecord, FileRecord
from trackway_common.checkpoint.save import StagedFile, write_rank
from trackway_common.checkpoint.verify import Depth, verify_commit
from trackway_common.errors import CommandRejected, Fenced
from trackway_common.events import CheckpointRef, MetricValue
from trackway_common.object_store import AlreadyExists, StorageFull
from trackway_common.testing.checkpoints import CONFIG, DATASET, shard

NAME = CheckpointName(step=10, epoch=1, nonce="abcd")


@pytest.fixture
def fenced(run):
    run.log().append(Fence(epoch=1))
    return run


def change_receipt(run, of_rank, **changes):
    key = receipt_key(run.run_id, NAME, of_rank)
    receipt = decode_receipt(run.store.get(key))
    run.store.put(key, encode_receipt(replace(receipt, **changes)))


def test_a_whole_set_of_receipts_becomes_a_commit(fenced):
    fenced.write(NAME)
    parent = CheckpointRef(run_id="other", step=5, epoch=1, nonce="p", manifest_digest="sha256:p", slot=3)
    metrics = (MetricValue(name="loss", value=0.5), MetricValue(name="broken", value=float("nan")))
    entry = commit_checkpoint(fenced.log(), replace(fenced.request(NAME, parent), metrics=metrics))
    commit = entry.body
    assert (commit.epoch, commit.step, commit.path, commit.world_size) == (1, 10, NAME.path, 2)
    assert (commit.config_digest, commit.dataset_digests) == (CONFIG, (DATASET,))
    assert (commit.samples_consumed, commit.parent) == (320, parent)
    assert commit.metrics == (metrics[0],), "what is no number has no JSON form"
    manifest = load_manifest(fenced.store, fenced.run_id, NAME, commit.manifest_digest)
    assert manifest.size_bytes == commit.size_bytes == sum(file.size_bytes for file in manifest.files)
    assert [file.path for file in manifest.files] == [
        "rank/r00000.json",
        "rank/r00001.json",
        "shard/r00000-0.bin",
        "shard/r00001-0.bin",
    ]
    assert verify_commit(fenced.store, fenced.run_id, commit.path, commit.manifest_digest, Depth.HASHES).ok


def test_committing_again_returns_the_first_commit(fenced):
    fenced.write(NAME)
    first = commit_checkpoint(fenced.log("a"), fenced.request(NAME))
    assert commit_checkpoint(fenced.log("b"), fenced.request(NAME)) == first
    fenced.log().append(Fence(epoch=2))
    assert commit_checkpoint(fenced.log("c"), fenced.request(NAME)) == first, "also once another epoch owns the run"
    assert fenced.log().slots() == [1, 2, 3]


def test_two_checkpointers_make_the_same_manifest(fenced):
    fenced.write(NAME)
    commit_checkpoint(fenced.log(), fenced.request(NAME))
    manifest = fenced.store.get(manifest_key(fenced.run_id, NAME))
    other = type(fenced)(type(fenced.store)(), fenced.run_id)
    other.log().append(Fence(epoch=1))
    other.now_ms += 10**9
    other.write(NAME)
    commit_checkpoint(other.log("other"), other.request(NAME))
    assert other.store.get(manifest_key(other.run_id, NAME)) == manifest


def test_a_manifest_left_by_a_dead_checkpointer_is_used(fenced, monkeypatch):
    from trackway_common.checkpoint.commit_log import CommitLog

    fenced.write(NAME)

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "append", die)
        with pytest.raises(KeyboardInterrupt):
            commit_checkpoint(fenced.log(), fenced.request(NAME))
    assert fenced.log().refresh().commits == {}
    assert commit_checkpoint(fenced.log(), fenced.request(NAME)).slot == 2


def test_a_foreign_manifest_is_never_committed(fenced):
    fenced.write(NAME)
    fenced.store.put_if_absent(manifest_key(fenced.run_id, NAME), b"{}")
    with pytest.raises(CommandRejected, match="nonce was used twice"):
        commit_checkpoint(fenced.log(), fenced.request(NAME))


def test_missing_receipts_are_named(fenced):
    fenced.write(NAME)
    fenced.store.delete(receipt_key(fenced.run_id, NAME, 1))
    with pytest.raises(CommandRejected, match=r"no receipt of ranks \[1\] of world size 2") as raised:
        commit_checkpoint(fenced.log(), fenced.request(NAME))
    assert raised.value.reason == "RECEIPTS_INCOMPLETE"
    assert fenced.log().slots() == [1]
    with pytest.raises(CommandRejected, match="of world size 0"):
        commit_checkpoint(fenced.log(), replace(fenced.request(NAME), world_size=0))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"config_digest": "sha256:other"}, "config"),
        ({"dataset_digests": ("sha256:other",)}, "datasets"),
        ({"world_size": 3}, "world size"),
        ({"code_digest": "sha256:other"}, "code"),
        ({"layout": "single"}, "layout"),
        ({"cursor": CursorRecord(seed="7", data_epoch=0, samples_consumed=319)}, "data cursor"),
        ({"rng": "shard/r00001-0.bin"}, "generators"),
        ({"items_planned": 2}, "planned 2 items and wrote 1"),
    ],
)
def test_ranks_that_disagree_are_never_committed(fenced, changes, what):
    fenced.write(NAME)
    change_receipt(fenced, 1, **changes)
    with pytest.raises(CommandRejected, match=f"rank 1.*{what}") as raised:
        commit_checkpoint(fenced.log(), fenced.request(NAME))
    assert raised.value.reason == "RECEIPTS_DISAGREE"
    assert fenced.log().slots() == [1]


@pytest.mark.parametrize("changes", [{"step": 11}, {"epoch": 2}, {"nonce": "other"}, {"run_id": "x"}, {"rank": 0}])
def test_a_receipt_of_another_checkpoint_is_refused(fenced, changes):
    fenced.write(NAME)
    change_receipt(fenced, 1, **changes)
    with pytest.raises(CommandRejected, match="is the receipt of") as raised:
        commit_checkpoint(fenced.log(), fenced.request(NAME))
    assert raised.value.reason == "RECEIPT_INVALID"


def test_two_ranks_never_claim_one_file(fenced):
    fenced.write(NAME)
    first, _ = read_receipt(fenced.store, fenced.run_id, NAME, 0)
    change_receipt(fenced, 1, files=first.files)
    with pytest.raises(CommandRejected, match="two ranks claim"):
        commit_checkpoint(fenced.log(), fenced.request(NAME))


def test_a_file_that_is_short_or_gone_is_named(fenced):
    fenced.write(NAME)
    key = f"checkpoints/{fenced.run_id}/{NAME.path}/shard/r00001-0.bin"
    fenced.store.put(key, b"short")
    with pytest.raises(CommandRejected, match=r"r00001-0\.bin of rank 1 has 5 bytes, its receipt says 1000"):
        commit_checkpoint(fenced.log(), fenced.request(NAME))
    fenced.store.delete(key)
    with pytest.raises(CommandRejected, match="has None bytes"):
        commit_checkpoint(fenced.log(), fenced.request(NAME))


def test_a_commit_without_or_below_the_fence_is_refused(run):
    run.write(NAME)
    with pytest.raises(CommandRejected, match="fence first"):
        commit_checkpoint(run.log(), run.request(NAME))
    run.log().append(Fence(epoch=2))
    with pytest.raises(Fenced):
        commit_checkpoint(run.log(), run.request(NAME))
    assert run.log().slots() == [1]


def test_a_nonce_is_written_once(fenced):
    fenced.write(NAME)
    with pytest.raises(AlreadyExists):
        fenced.write(NAME)


def test_a_rank_without_room_writes_nothing(fenced, monkeypatch):
    monkeypatch.setattr(fenced.store, "free_bytes", lambda: 1000)
    with pytest.raises(StorageFull, match="free some space"):
        write_rank(fenced.store, fenced.rank_save(NAME, 0), [shard(NAME, 0)], reserve_bytes=0)
    assert fenced.store.names("checkpoints/run-1/data") == []
    monkeypatch.setattr(fenced.store, "free_bytes", lambda: 1050)
    write_rank(fenced.store, fenced.rank_save(NAME, 0), [shard(NAME, 0)], reserve_bytes=0)


def test_a_rank_may_have_nothing_of_its_own(fenced):
    write_rank(fenced.store, replace(fenced.rank_save(NAME, 0), items_planned=0), [], reserve_bytes=0)
    write_rank(fenced.store, fenced.rank_save(NAME, 1), [shard(NAME, 1)], reserve_bytes=0)
    assert commit_checkpoint(fenced.log(), fenced.request(NAME)).slot == 2


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"format":"trackway.receipt/1"}', b"\xff", b"0" * 100])
def test_a_damaged_receipt_is_refused(fenced, data):
    fenced.write(NAME)
    fenced.store.put(receipt_key(fenced.run_id, NAME, 0), data)
    with pytest.raises(CommandRejected, match=r"rank/r00000.json"):
        commit_checkpoint(fenced.log(), fenced.request(NAME))


GOOD = FileRecord(path="shard/a", size_bytes=1, xxh3_64="0" * 16, blake3="0" * 64)


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "/etc/passwd",
        "shard/../../x",
        "shard",
        "shard/",
        "manifest.json",
        "other/x",
        "shard//x",
        "",
    ],
)
def test_a_manifest_never_leads_out_of_its_folder(path):
    with pytest.raises(ValueError, match=r"shard|path"):
        replace(GOOD, path=path)


@pytest.mark.parametrize("changes", [{"size_bytes": -1}, {"xxh3_64": "0"}, {"blake3": "Z" * 64}, {"blake3": ""}])
def test_a_file_without_a_size_and_two_hashes_is_refused(changes):
    with pytest.raises(ValueError, match="shard/a"):
        replace(GOOD, **changes)


def manifest_of(**changes):
    values = {
        "run_id": "run-1",
        "step": 10,
        "epoch": 1,
        "nonce": "abcd",
        "world_size": 1,
        "layout": "single",
        "config_digest": "",
        "code_digest": "",
        "dataset_digests": (),
        "files": (GOOD,),
        "rng": (),
        "cursor": None,
        "parent": None,
        "metrics": (),
        "size_bytes": 1,
    }
    return Manifest(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": (GOOD, GOOD), "size_bytes": 2}, "twice"),
        ({"size_bytes": 2}, "sum"),
        ({"rng": ("shard/b",)}, "generators"),
        ({"format": "trackway.manifest/2"}, "format"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        manifest_of(**changes)


def test_a_manifest_is_read_back_and_tells_where_it_is_wrong():
    manifest = manifest_of(metrics=(MetricValue(name="loss", value=2.0),))
    data = encode_manifest(manifest)
    assert decode_manifest(data) == manifest
    for old, new, where in (
        (b'"path":"shard/a"', b'"path":"shard/../../a"', r"manifest.files\[0\]"),
        (b'"step":10', b'"step":"10"', "manifest.step: int is needed"),
        (b'"files":[', b'"files":[3,', r"manifest.files\[0\]: an object is needed"),
        (b'"world_size":1', b'"world_size":true', "manifest.world_size"),
    ):
        with pytest.raises(ValueError, match=where):
            decode_manifest(data.replace(old, new))


def test_members_that_a_later_version_added_are_ignored():
    later = encode(manifest_of()).replace(b'"world_size":1', b'"world_size":1,"zone":"x"')
    assert decode_manifest(later) == manifest_of()


def test_a_huge_manifest_is_refused_unread(fenced, monkeypatch):
    from trackway_common.checkpoint import manifest

    entry = fenced.save(10)
    monkeypatch.setattr(manifest, "MAX_MANIFEST_BYTES", 10)
    checked = verify_commit(fenced.store, fenced.run_id, entry.body.path, entry.body.manifest_digest, Depth.SIZES)
    assert "more than the 10 that may be read" in checked.problems[0]


def test_a_staged_file_may_lie_in_a_folder(disk_run):
    disk_run.log().append(Fence(epoch=1))
    for rank in range(2):
        file = StagedFile(path=f"shard/deep/er/r{rank}", chunks=(b"x",), size_bytes=1)
        write_rank(disk_run.store, disk_run.rank_save(NAME, rank), [file], reserve_bytes=0)
    assert commit_checkpoint(disk_run.log(), disk_run.request(NAME)).slot == 2
