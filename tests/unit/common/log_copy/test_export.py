"""A copied log: what is in it, what is refused, and what a crash leaves."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest
from trackway_common.acceptance import partition_scope
from trackway_common.codec import CorruptRecord
from trackway_common.commit import Term
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import ComputeOffer, PoolObserved, Price
from trackway_common.history.fold import fold_run
from trackway_common.ids import pool_stream
from trackway_common.log_copy import reader
from trackway_common.log_copy.manifest import Scope, read_manifest
from trackway_common.log_copy.reader import LogCopy
from trackway_common.log_copy.segment import Copied, Standing, read_frame, read_frames
from trackway_common.log_copy.verify import verify
from trackway_common.log_copy.writer import LogCopyWriter
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_facts import RunFacts, append_commits, sha
from trackway_common.topics import FACT_PARTITIONS, RUNS

from tests.unit.common.log_copy.conftest import KILLED, NOW, OTHER_PROJECT, QUEUED, RUNNING, SPEC, SPEC_DIGEST, World


def test_every_record_is_copied_as_it_was_with_its_verdict(world: World, tmp_path: Path) -> None:
    made = world.export(tmp_path / "log")
    copied = [
        frame.copied
        for segment in read_manifest(tmp_path / "log").segments
        for frame in read_frames((tmp_path / "log" / segment.path).open("rb"), segment.topic)
        if segment.topic == RUNS
    ]
    live = world.log.records(RUNS)
    assert [(c.record.offset, c.record.key, c.record.value, c.record.headers) for c in copied] == [
        (r.offset, r.key, r.value, r.headers) for r in live
    ]
    assert {c.standing for c in copied} == {Standing.ACCEPTED, Standing.CLAIMED, Standing.REJECTED, Standing.POISON}
    [refused] = [c for c in copied if c.standing is Standing.REJECTED]
    assert refused.refusal.startswith("term 0.0 is not the owner's")
    assert made.runs == 4


def test_a_copy_is_whole_and_says_so(copied: Callable[[], Path]) -> None:
    check = verify(copied())
    assert check.ok, check.problems
    assert check.rejected == 1
    assert check.digest.startswith("sha256:")


def test_commits_come_back_as_they_were_accepted(world: World, copied: Callable[[], Path]) -> None:
    copy = LogCopy(copied())
    ours = [c for c in world.commits[KILLED] if not c.stream.startswith("partitions/")]
    assert sorted(copy.commits(KILLED), key=lambda c: (c.stream, c.first_seq)) == sorted(
        ours, key=lambda c: (c.stream, c.first_seq)
    )
    assert copy.refused(KILLED) == 1


def test_short_ids_find_their_run(copied: Callable[[], Path]) -> None:
    copy = LogCopy(copied())
    assert copy.run_id("0199f3b") == QUEUED
    with pytest.raises(CommandRejected, match="several runs begin"):
        copy.run_id("0199f3a1")
    with pytest.raises(NotFound, match="trackway log runs"):
        copy.run_id("ffff")
    assert [(run.run_id, run.phase, run.attempt) for run in copy.runs()] == [
        (KILLED, "SUCCEEDED", 2),
        (RUNNING, "RUNNING", 1),
        (QUEUED, "QUEUED", 0),
        (OTHER_PROJECT, "QUEUED", 0),
    ]


def test_one_run_is_copied_with_the_claims_that_judge_it(world: World, tmp_path: Path) -> None:
    made = world.export(tmp_path / "one", Scope(run_id="0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d01"))
    assert made.runs == 1
    assert verify(tmp_path / "one").problems == ()
    copy = LogCopy(tmp_path / "one")
    assert [run.run_id for run in copy.runs()] == [KILLED]
    assert copy.refused(KILLED) == 1


def test_a_run_is_named_short_and_a_project_by_its_name(world: World, tmp_path: Path) -> None:
    world.export(tmp_path / "short", Scope(run_id="0199f3c"))
    assert [run.run_id for run in LogCopy(tmp_path / "short").runs()] == [OTHER_PROJECT]
    world.export(tmp_path / "project", Scope(project="other"))
    assert [run.run_id for run in LogCopy(tmp_path / "project").runs()] == [OTHER_PROJECT]
    assert verify(tmp_path / "project").problems == ()


@pytest.mark.parametrize("scope", [Scope(run_id="ffff"), Scope(run_id=RUNNING[:-1] + "9"), Scope(project="none")])
def test_what_is_not_there_leaves_no_folder(world: World, tmp_path: Path, scope: Scope) -> None:
    with pytest.raises(NotFound):
        world.export(tmp_path / "log", scope)
    assert not (tmp_path / "log").exists()


def test_a_folder_that_holds_something_is_refused_and_left_alone(world: World, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "mine").write_text("precious")
    with pytest.raises(CommandRejected, match="not empty"):
        world.export(tmp_path / "log")
    assert [path.name for path in tmp_path.rglob("*")] == ["log", "mine"]
    (tmp_path / "log" / "mine").unlink()
    world.export(tmp_path / "log")
    assert verify(tmp_path / "log").ok


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_leaves_nothing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fails(self: LogCopyWriter, runs: object) -> None:
        raise failure

    monkeypatch.setattr(LogCopyWriter, "seal", fails)
    with pytest.raises((KeyboardInterrupt, CommandRejected)):
        world.export(tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_export_left_is_no_copy_and_the_next_one_begins_anew(world: World, tmp_path: Path) -> None:
    left = tmp_path / ".log.partial"
    (left / "trackway.runs.v1").mkdir(parents=True)
    (left / "trackway.runs.v1/0000.seg").write_bytes(b"half a rec")
    (left / "index.sqlite").write_bytes(b"half an index")
    with pytest.raises(CommandRejected, match="holds no exported log"):
        LogCopy(left)
    world.export(tmp_path / "log")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert verify(tmp_path / "log").ok


def test_two_exports_of_one_name_don_t_mix(world: World, tmp_path: Path) -> None:
    partial = tmp_path / ".log.partial"
    partial.mkdir()
    other = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(CommandRejected, match="another export"):
            world.export(tmp_path / "log")
    finally:
        os.close(other)


def test_blobs_that_facts_name_come_along_up_to_the_limit(world: World, tmp_path: Path) -> None:
    world.blobs = {
        SPEC_DIGEST: SPEC,
        "sha256:" + "9" * 64: b"larger than what is left",
        "sha256:" + "0" * 64: b"unnamed",
    }
    made = world.export(tmp_path / "log", blob_bytes=len(SPEC) + 1)
    assert (made.blobs, made.blobs_left_out) == (1, 1)
    assert LogCopy(tmp_path / "log").blob(SPEC_DIGEST) == SPEC
    with pytest.raises(NotFound, match="--store"):
        LogCopy(tmp_path / "log").blob(sha("d"))
    assert verify(tmp_path / "log").ok


def test_the_copy_says_when_it_was_made(copied: Callable[[], Path]) -> None:
    assert read_manifest(copied()).exported_at == NOW


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: _flip(_largest(folder), 40),
        lambda folder: _largest(folder).unlink(),
        lambda folder: (folder / "more").write_text("x"),
        lambda folder: _flip(folder / "index.sqlite", 5000),
        lambda folder: (folder / "index.sqlite").write_bytes(b""),
    ],
    ids=["flipped byte", "missing file", "foreign file", "flipped index", "empty index"],
)
def test_harm_is_found(copied: Callable[[], Path], harm: Callable[[Path], None]) -> None:
    folder = copied()
    harm(folder)
    assert not verify(folder).ok


def _largest(folder: Path) -> Path:
    return max((folder / RUNS).glob("*.seg"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "trackway-log/9"}', '{"format": "trackway-log/1"}'])
def test_what_is_no_copied_log_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CommandRejected, match="holds no exported log"):
        LogCopy(tmp_path)
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(CommandRejected):
        LogCopy(tmp_path)


def test_a_damaged_copy_is_told_not_explained(copied: Callable[[], Path]) -> None:
    folder = copied()
    (folder / "index.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(CommandRejected, match="trackway log verify"):
        LogCopy(folder).run_id("0199")


def test_a_length_without_an_end_is_damage_and_not_read_on() -> None:
    file = BytesIO(b"\xff" * (1 << 20))
    with pytest.raises(CorruptRecord, match="no length"):
        next(read_frames(file, RUNS))
    assert file.tell() == 10


def test_of_a_pool_only_its_last_word_is_read(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_stream("local")
    facts = RunFacts(pool)
    facts.claim(partition_scope(partition_of(pool.encode(), FACT_PARTITIONS)), pool, Term(0, 9))
    for ranks in (1, 2, 3):
        offers = (ComputeOffer(compute_class="local-cpu-2x", max_ranks=ranks, price=Price()),)
        facts.commit(pool, PoolObserved(pool="local", agent_id="a", offers=offers, observed_at=NOW))
    asyncio.run(append_commits(world.log, facts.commits, run_id=pool))
    world.export(tmp_path / "log")
    copy = LogCopy(tmp_path / "log")
    history = fold_run(QUEUED, copy.commits(QUEUED))
    read: list[int] = []

    def counted(file: BinaryIO, position: int, size: int, topic: str) -> Copied:
        read.append(position)
        return read_frame(file, position, size, topic)

    monkeypatch.setattr(reader, "read_frame", counted)
    seen = copy.surroundings(history).pool
    assert seen is not None
    assert [offer.max_ranks for offer in seen.offers] == [3]
    assert len(read) == 1
