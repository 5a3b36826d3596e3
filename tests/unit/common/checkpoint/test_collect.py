"""Retention and deletion."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from trackway_common.checkpoint.collect import collect, reclaim
from trackway_common.checkpoint.entries import Deleted, Fence, Hold, Quarantine, Release, Supersede, Tombstone
from trackway_common.checkpoint.fsck import fsck
from trackway_common.checkpoint.layout import CheckpointName, data_prefix, trash_prefix
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.checkpoint.retention import KeepLast, next_due_ms, to_supersede
from trackway_common.errors import CommandRejected
from trackway_common.object_store import InMemoryObjectStore
from trackway_common.testing.checkpoints import CheckpointedRun

KEEP_2 = KeepLast(count=2)
GRACE_MS = 1000


@pytest.fixture
def trained(run):
    run.log().append(Fence(epoch=1))
    for step in range(1, 6):
        run.save(step)  # slots 2 to 6
    return run


def folders(run):
    return [name.rstrip("/") for name in run.store.names(data_prefix(run.run_id))]


def steps(run):
    return [int(name[1:10]) for name in folders(run)]


def test_the_last_n_stay_and_the_rest_goes_after_the_grace(trained):
    first = collect(trained.log(), KeepLast(count=3), grace_ms=GRACE_MS)
    assert (first.superseded, first.tombstoned, first.deleted) == ((2, 3), (2, 3), ())
    assert steps(trained) == [1, 2, 3, 4, 5]
    trained.now_ms += GRACE_MS - 1
    assert collect(trained.log(), KeepLast(count=3), grace_ms=GRACE_MS).deleted == ()
    trained.now_ms += 1
    assert collect(trained.log(), KeepLast(count=3), grace_ms=GRACE_MS).deleted == (2, 3)
    assert steps(trained) == [3, 4, 5]
    assert trained.store.names(trash_prefix(trained.run_id)) == []
    deleted = [entry.body for entry in trained.log().entries() if isinstance(entry.body, Deleted)]
    sizes = {slot: trained.log().entry(slot).body.size_bytes for slot in (2, 3)}
    assert {body.commit_slot: body.freed_bytes for body in deleted} == sizes
    assert fsck(trained.log()).problems == ()


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_two_always_stay(trained, count):
    collect(trained.log(), KeepLast(count=count), grace_ms=0)
    assert steps(trained) == [4, 5]


def test_collecting_again_does_nothing_more(trained):
    collect(trained.log(), KEEP_2, grace_ms=0)
    slots = trained.log().slots()
    again = collect(trained.log(), KEEP_2, grace_ms=0)
    assert (again.superseded, again.tombstoned, again.deleted, again.dropped) == ((), (), (), ())
    assert trained.log().slots() == slots


def test_only_restorable_commits_count(trained):
    trained.log().append(Quarantine(commit_slot=6, why="bad"))
    collect(trained.log(), KEEP_2, grace_ms=0)
    assert steps(trained) == [3, 4, 5], "the quarantined newest stays as evidence and does not count"
    trained.save(6)
    trained.save(7)
    collect(trained.log(), KEEP_2, grace_ms=0)
    assert steps(trained) == [6, 7]


def test_uncommitted_folders_do_not_count(trained):
    for number in range(4):
        trained.write(CheckpointName(step=50 + number, epoch=1, nonce=f"n{number:04d}"))
    collect(trained.log(), KEEP_2, grace_ms=0)
    assert steps(trained) == [4, 5, 50, 51, 52, 53]


def test_held_bytes_stay_until_released(trained):
    trained.log().append(Hold(commit_slot=2, consumer="evaluator", reason="final evaluation"))
    assert collect(trained.log(), KEEP_2, grace_ms=0).tombstoned == (3, 4)
    assert steps(trained) == [1, 4, 5]
    trained.log().append(Release(commit_slot=2, consumer="evaluator"))
    collect(trained.log(), KEEP_2, grace_ms=0)
    assert steps(trained) == [4, 5]


def test_a_hold_that_took_the_slot_first_wins(trained, monkeypatch):
    log = trained.log()
    append = log.append

    def hold_first(body, **options):
        if isinstance(body, Tombstone) and body.commit_slot == 3:
            trained.log("evaluator").append(Hold(commit_slot=3, consumer="evaluator", reason="r"))
        return append(body, **options)

    monkeypatch.setattr(log, "append", hold_first)
    assert collect(log, KEEP_2, grace_ms=0).tombstoned == (2, 4)
    assert steps(trained) == [2, 4, 5]


def test_what_an_older_epoch_left_is_dropped_at_once(trained):
    dead = CheckpointName(step=6, epoch=1, nonce="dead")
    trained.write(dead)
    assert collect(trained.log(), KeepLast(count=9)).dropped == ()
    trained.log().append(Fence(epoch=2))
    own = CheckpointName(step=6, epoch=2, nonce="mine")
    trained.write(own)
    assert collect(trained.log(), KeepLast(count=9)).dropped == (str(dead),)
    assert folders(trained)[-1] == str(own)
    assert steps(trained) == [1, 2, 3, 4, 5, 6]


def test_folders_that_are_not_ours_are_left_and_reported(trained):
    trained.store.put_if_absent(f"{data_prefix(trained.run_id)}/notes/x", b"")
    trained.log().append(Fence(epoch=2))
    assert collect(trained.log(), KEEP_2).dropped == ()
    assert "notes" in fsck(trained.log()).writing


def test_bytes_that_a_power_cut_brought_back_go_again(trained):
    name = folders(trained)[0]
    files = {f"{data_prefix(trained.run_id)}/{name}/manifest.json": b"old"}
    collect(trained.log(), KEEP_2, grace_ms=0)
    for key, data in files.items():
        trained.store.put_if_absent(key, data)
    assert collect(trained.log(), KEEP_2, grace_ms=0).dropped == (name,)
    assert steps(trained) == [4, 5]


def test_left_over_trash_is_emptied(trained):
    trained.store.put_if_absent(f"{trash_prefix(trained.run_id)}/s000000001-e0001-abcd/shard/x", b"")
    collect(trained.log(), KeepLast(count=9))
    assert trained.store.names(trash_prefix(trained.run_id)) == []


def test_what_is_gone_is_never_resumed_from(trained):
    collect(trained.log(), KEEP_2, grace_ms=0)
    log = trained.log()
    target = choose_resume_target(log, raise_fence(log, 2))
    assert target.checkpoint.step == 5
    assert target.passed_over == ()


def test_a_superseded_commit_names_its_policy(trained):
    collect(trained.log(), KeepLast(count=4))
    entry = next(entry for entry in trained.log().entries() if isinstance(entry.body, Supersede))
    assert entry.body == Supersede(commit_slot=2, by_policy="keep_last=4")


def test_the_policy_is_pure(trained):
    state = trained.log().refresh()
    assert [commit.slot for commit in to_supersede(state, KeepLast(count=3))] == [2, 3]
    assert trained.log().refresh() == state


def test_the_log_says_when_more_may_be_freed(trained):
    assert next_due_ms(trained.log().refresh(), GRACE_MS) is None
    trained.log().append(Hold(commit_slot=2, consumer="evaluator", reason="r", ttl_seconds=5))
    trained.log().append(Hold(commit_slot=3, consumer="evaluator", reason="promoted"))
    collect(trained.log(), KEEP_2, grace_ms=GRACE_MS)
    assert next_due_ms(trained.log().refresh(), GRACE_MS) == trained.now_ms + GRACE_MS
    trained.now_ms += GRACE_MS
    assert reclaim(trained.log(), grace_ms=GRACE_MS).deleted == (4,)
    assert next_due_ms(trained.log().refresh(), GRACE_MS) == trained.now_ms - GRACE_MS + 5000
    trained.now_ms += 5000
    assert reclaim(trained.log(), grace_ms=0).deleted == (2,)
    assert next_due_ms(trained.log().refresh(), GRACE_MS) is None
    assert steps(trained) == [2, 4, 5]


class Retention(RuleBasedStateMachine):
    """Saves, holds, collections, quarantines and new attempts in any order, by several writers."""

    def __init__(self) -> None:
        super().__init__()
        self.run = CheckpointedRun(InMemoryObjectStore(), world_size=1)
        self.epoch = 1
        self.step = 0
        self.run.log().append(Fence(epoch=1))
        self.logs = [self.run.log(f"w{number}") for number in range(2)]

    writer = st.integers(0, 1)
    pick = st.integers(0, 30)

    @rule()
    def save(self):
        self.step += 1
        self.run.save(self.step, self.epoch)

    @rule()
    def leave_bytes(self):
        self.run.write(CheckpointName(step=900 + self.step, epoch=self.epoch, nonce=f"x{self.run.now_ms}"))
        self.run.now_ms += 1

    @rule()
    def new_attempt(self):
        self.epoch += 1
        log = self.run.log()
        target = choose_resume_target(log, raise_fence(log, self.epoch))
        restorable = log.refresh().restorable
        assert target.passed_over == ()
        assert (target.checkpoint.slot if target.checkpoint else None) == (restorable[0].slot if restorable else None)

    @precondition(lambda self: self.step)
    @rule(writer=writer, pick=pick, ttl=st.sampled_from([0, 2]))
    def hold(self, writer, pick, ttl):
        commit = self.commit(pick)
        hold = Hold(commit_slot=commit.slot, consumer="c", reason="r", ttl_seconds=ttl)
        if commit.restorable:
            self.logs[writer].append(hold)
        else:
            with pytest.raises(CommandRejected):
                self.logs[writer].append(hold)

    @precondition(lambda self: self.step)
    @rule(writer=writer, pick=pick)
    def release(self, writer, pick):
        self.logs[writer].append(Release(commit_slot=self.commit(pick).slot, consumer="c"))

    @precondition(lambda self: self.step)
    @rule(pick=pick)
    def quarantine(self, pick):
        commit = self.commit(pick)
        if commit.deleted is None:
            self.run.log().append(Quarantine(commit_slot=commit.slot, why="w"))

    @rule(writer=writer, count=st.integers(0, 4), wait_ms=st.integers(0, 3000))
    def collect(self, writer, count, wait_ms):
        self.run.now_ms += wait_ms
        before = self.run.log().refresh()
        held = {commit.slot for commit in before.commits.values() if commit.held(self.run.now_ms)}
        newest = {commit.slot for commit in before.restorable[: max(count, 2)]}
        collect(self.logs[writer], KeepLast(count=count), grace_ms=GRACE_MS)
        after = self.run.log().refresh()
        kept = {commit.slot for commit in after.restorable}
        assert newest <= kept
        assert {slot for slot in held if before.commits[slot].restorable} <= kept

    @invariant()
    def everything_is_as_the_log_says(self):
        report = fsck(self.run.log())
        assert report.problems == ()
        state = self.run.log().refresh()
        there = set(folders(self.run))
        for commit in state.commits.values():
            assert (commit.commit.path.removeprefix("data/") in there) == (commit.deleted is None)

    def commit(self, pick):
        commits = list(self.run.log().refresh().commits.values())
        return commits[pick % len(commits)]


TestRetention = Retention.TestCase
TestRetention.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
