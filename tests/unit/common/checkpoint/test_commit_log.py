"""Appending, racing and reading the log."""

from __future__ import annotations

import threading

import pytest
from trackway_common.checkpoint.commit_log import HINT_EVERY, CommitLog
from trackway_common.checkpoint.entries import Fence, Hold, Supersede
from trackway_common.checkpoint.layout import hint_key, log_key
from trackway_common.checkpoint.log_state import LogState, fold
from trackway_common.errors import CommandRejected, CorruptLog, Fenced, NotFound, Unavailable
from trackway_common.object_store import AlreadyExists, InMemoryObjectStore
from trackway_common.testing.checkpoints import CheckpointedRun


def overwrite(store, key, data):
    store.delete(key)
    store.put(key, data)


def test_an_empty_log_has_no_tip(run):
    assert run.log().tip() is None
    assert run.log().refresh() == LogState()
    with pytest.raises(NotFound):
        run.log().entry(1)


def test_entries_take_the_slots_in_order(run):
    run.log().append(Fence(epoch=1))
    run.save(10)
    run.save(20)
    log = run.log()
    assert log.slots() == [1, 2, 3]
    assert [type(entry.body).__name__ for entry in log.entries()] == ["Fence", "Commit", "Commit"]
    assert [entry.slot for entry in log.entries(after=2)] == [3]
    assert log.tip() == log.entry(3)
    assert fold(LogState(), log.entries()) == log.refresh()


def test_a_reader_sees_what_others_append_later(run):
    reader = run.log()
    assert reader.refresh().slot == 0
    run.log().append(Fence(epoch=1))
    assert reader.refresh().head.fence == 1
    run.save(10)
    assert reader.refresh().restorable[0].commit.step == 10


def test_appending_again_returns_the_entry_that_is_there(run):
    first = run.log("a").append(Fence(epoch=1))
    assert run.log("b").append(Fence(epoch=1)) == first
    assert run.log().slots() == [1]


def test_sixteen_threads_race_and_every_slot_is_taken_once(run):
    run.log().append(Fence(epoch=1))
    for step in (1, 2):
        run.save(step)
    start = threading.Barrier(16)
    entries = []

    def hold(number: int) -> None:
        log = run.log(f"w{number}")
        log.refresh()
        start.wait()
        entries.append(log.append(Hold(commit_slot=2, consumer=f"c{number}", reason="r")))

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.slot for entry in entries) == list(range(4, 20))
    assert run.log().slots() == list(range(1, 20))
    assert {hold.consumer for hold in run.log().refresh().commits[2].holds} == {f"c{number}" for number in range(16)}


def test_sixteen_claims_of_one_epoch_are_one_entry(run):
    start = threading.Barrier(16)
    slots = []

    def fence() -> None:
        start.wait()
        slots.append(run.log().append(Fence(epoch=7)).slot)

    threads = [threading.Thread(target=fence) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slots == [1] * 16


def test_a_zombie_loses_the_slot_race_and_stops(run):
    run.log().append(Fence(epoch=1))
    zombie = run.log("zombie")
    name = run.save(10).body.path
    zombie.refresh()
    run.log("next").append(Fence(epoch=2))
    run.save(20, epoch=2)
    with pytest.raises(Fenced, match="epoch 2 owns"):
        zombie.append(Supersede(commit_slot=2, by_policy="p"), epoch=1)
    with pytest.raises(Fenced, match="epoch 2 owns"):
        run.save(30, epoch=1)
    assert [commit.commit.step for commit in run.log().refresh().restorable] == [20, 10]
    assert name in {commit.commit.path for commit in run.log().refresh().restorable}


def test_the_hint_is_only_a_hint(run):
    run.log().append(Fence(epoch=1))
    for step in range(HINT_EVERY):
        run.save(step)
    store, tip = run.store, run.log().entry(HINT_EVERY + 1)
    assert store.get(hint_key(run.run_id)) == str(HINT_EVERY - 1).encode()
    for hint in (b"0", b"3", b"17", b"999999", b"", b"nonsense", b"-1", b"9" * 5000):
        store.put(hint_key(run.run_id), hint)
        assert run.log().tip() == tip
    store.delete(hint_key(run.run_id))
    assert run.log().tip() == tip


def test_the_tip_costs_one_listing_and_one_entry(run):
    class Counting(InMemoryObjectStore):
        def __init__(self):
            super().__init__()
            self.calls = []

        def names(self, prefix, *, start_after=""):
            self.calls.append("list")
            return super().names(prefix, start_after=start_after)

        def get(self, key, *, limit_bytes=None):
            if not key.endswith("hint"):
                self.calls.append("get")
            return super().get(key, limit_bytes=limit_bytes)

    counted = CheckpointedRun(Counting())
    counted.log().append(Fence(epoch=1))
    for step in range(40):
        counted.save(step)
    counted.store.calls.clear()
    assert counted.log().tip().slot == 41
    assert counted.store.calls == ["list", "get"]


def test_a_removed_entry_halts(run):
    run.log().append(Fence(epoch=1))
    run.save(10)
    run.save(20)
    run.store.delete(log_key(run.run_id, 2))
    with pytest.raises(CorruptLog, match="slot 2 is missing"):
        run.log().refresh()
    with pytest.raises(CorruptLog, match="slot 2 is missing"):
        run.save(30)


@pytest.mark.parametrize("data", [b"", b"{}", b"x" * 5000])
def test_a_damaged_entry_halts(run, data):
    run.log().append(Fence(epoch=1))
    run.save(10)
    overwrite(run.store, log_key(run.run_id, 2), data)
    with pytest.raises(CorruptLog, match="slot 2"):
        run.log().refresh()
    with pytest.raises(CorruptLog, match="slot 2"):
        run.log().tip()


def test_a_store_that_reports_its_own_success_as_a_conflict(run):
    """A client that retries by itself puts twice: the second try finds what the first one wrote."""

    class Stuttering(InMemoryObjectStore):
        def put_if_absent(self, key, data):
            super().put_if_absent(key, data)
            raise AlreadyExists(key)

    log = CommitLog(Stuttering(), "r", writer="w", now_ms=lambda: 0)
    assert log.append(Fence(epoch=1)).slot == 1
    assert log.append(Fence(epoch=2)).slot == 2
    assert log.slots() == [1, 2]


@pytest.mark.parametrize("applied", [True, False])
def test_after_an_uncertain_append_the_same_call_settles_it(applied):
    class Uncertain(InMemoryObjectStore):
        failing = True

        def put_if_absent(self, key, data):
            if applied or not self.failing:
                super().put_if_absent(key, data)
            if self.failing:
                self.failing = False
                raise Unavailable("no answer")

    log = CommitLog(Uncertain(), "r", writer="w", now_ms=lambda: 0)
    with pytest.raises(Unavailable):
        log.append(Fence(epoch=1))
    assert log.append(Fence(epoch=1)).slot == 1
    assert log.slots() == [1]


def test_an_entry_stands_although_its_hint_can_not_be_written():
    class NoHints(InMemoryObjectStore):
        def put(self, key, data):
            raise Unavailable("no hints today")

    run = CheckpointedRun(NoHints())
    run.log().append(Fence(epoch=1))
    for step in range(HINT_EVERY):
        run.save(step)
    assert run.log().tip().slot == HINT_EVERY + 1


def test_a_bad_command_appends_nothing(run):
    run.log().append(Fence(epoch=1))
    with pytest.raises(CommandRejected):
        run.log().append(Hold(commit_slot=1, consumer="c", reason="r"))
    assert run.log().slots() == [1]
