"""Which entry may follow which."""

from __future__ import annotations

import pytest
from trackway_common.checkpoint.admission import admit
from trackway_common.checkpoint.entries import Commit, Deleted, Fence, Hold, LogEntry, Quarantine, Supersede, Tombstone
from trackway_common.checkpoint.log_state import LogState, fold, head_after
from trackway_common.errors import CommandRejected, Fenced, NotFound


def commit_of(nonce, epoch=1):
    path = f"data/s000000001-e{epoch:04d}-{nonce}"
    return Commit(epoch=epoch, nonce=nonce, step=1, path=path, manifest_digest="sha256:x")


def given(*bodies) -> LogState:
    state = LogState()
    for body in bodies:
        slot = state.slot + 1
        entry = LogEntry(slot=slot, at_ms=0, writer="w", token="t", body=body, head=head_after(state.head, slot, body))
        state = fold(state, (entry,))
    return state


THREE = (Fence(epoch=1), commit_of("aaaa"), commit_of("bbbb"), commit_of("cccc"))  # commits in slots 2, 3, 4
OLD = Supersede(commit_slot=2, by_policy="keep_last=2")


def test_an_epoch_fences_once_and_may_ask_again():
    assert admit(given(), Fence(epoch=3), at_ms=0) is None
    assert admit(given(Fence(epoch=3), commit_of("aaaa", 3)), Fence(epoch=3), at_ms=0) == 1


def test_a_lower_epoch_is_fenced():
    state = given(Fence(epoch=3))
    with pytest.raises(Fenced, match="epoch 3 owns"):
        admit(state, Fence(epoch=2), at_ms=0)
    with pytest.raises(Fenced, match="epoch 3 owns"):
        admit(state, commit_of("aaaa", 2), at_ms=0)


def test_a_commit_needs_its_own_fence():
    with pytest.raises(CommandRejected, match="fence first"):
        admit(given(Fence(epoch=1)), commit_of("aaaa", 2), at_ms=0)


def test_a_commit_is_made_once_even_when_fenced_since():
    assert admit(given(Fence(epoch=1), commit_of("aaaa"), Fence(epoch=2)), commit_of("aaaa"), at_ms=0) == 2


def test_an_attempt_that_was_fenced_may_say_nothing_at_all():
    state = given(*THREE, Fence(epoch=2))
    for body in (Quarantine(commit_slot=2, why="x"), OLD, Hold(commit_slot=2, consumer="c", reason="r")):
        with pytest.raises(Fenced):
            admit(state, body, at_ms=0, epoch=1)


def test_the_newest_is_never_superseded():
    with pytest.raises(CommandRejected, match="newest"):
        admit(given(*THREE), Supersede(commit_slot=4, by_policy="p"), at_ms=0)
    assert admit(given(*THREE), OLD, at_ms=0) is None
    assert admit(given(*THREE, OLD), OLD, at_ms=0) == 5


def test_only_what_was_superseded_gets_a_tombstone():
    with pytest.raises(CommandRejected, match="not superseded"):
        admit(given(*THREE), Tombstone(commit_slot=2), at_ms=0)
    assert admit(given(*THREE, OLD), Tombstone(commit_slot=2), at_ms=0) is None
    assert admit(given(*THREE, OLD, Tombstone(commit_slot=2)), Tombstone(commit_slot=2), at_ms=0) == 6


def test_two_restorable_commits_stay():
    state = given(*THREE, OLD, Quarantine(commit_slot=4, why="bad"))
    with pytest.raises(CommandRejected, match="must stay"):
        admit(state, Tombstone(commit_slot=2), at_ms=0)


def test_the_newest_restorable_stays_when_newer_ones_are_quarantined():
    superseded = (OLD, Supersede(commit_slot=3, by_policy="p"))
    state = given(*THREE, *superseded, Quarantine(commit_slot=4, why="bad"))
    for slot in (2, 3):
        with pytest.raises(CommandRejected, match="must stay"):
            admit(state, Tombstone(commit_slot=slot), at_ms=0)


def test_a_quarantined_commit_may_go():
    state = given(*THREE, OLD, Quarantine(commit_slot=2, why="bad"))
    assert admit(state, Tombstone(commit_slot=2), at_ms=0) is None


def test_hold_and_tombstone_exclude_each_other():
    hold = Hold(commit_slot=2, consumer="evaluator", reason="evaluating")
    with pytest.raises(CommandRejected, match="is held"):
        admit(given(*THREE, OLD, hold), Tombstone(commit_slot=2), at_ms=0)
    with pytest.raises(CommandRejected, match="given up"):
        admit(given(*THREE, OLD, Tombstone(commit_slot=2)), hold, at_ms=0)


def test_a_hold_is_placed_once():
    hold = Hold(commit_slot=2, consumer="evaluator", reason="evaluating")
    assert admit(given(*THREE, hold), hold, at_ms=0) == 5
    timed = Hold(commit_slot=2, consumer="evaluator", reason="evaluating", ttl_seconds=5)
    assert admit(given(*THREE, timed), timed, at_ms=0) is None, "asking again prolongs it"


def test_bytes_go_only_after_the_tombstone():
    deleted = Deleted(commit_slot=2, freed_bytes=1)
    with pytest.raises(CommandRejected, match="no tombstone"):
        admit(given(*THREE, OLD), deleted, at_ms=0)
    assert admit(given(*THREE, OLD, Tombstone(commit_slot=2)), deleted, at_ms=0) is None
    assert admit(given(*THREE, OLD, Tombstone(commit_slot=2), deleted), deleted, at_ms=0) == 7


@pytest.mark.parametrize("slot", [0, 1, 99])
def test_a_slot_without_a_commit_is_not_found(slot):
    with pytest.raises(NotFound):
        admit(given(*THREE), Quarantine(commit_slot=slot, why="x"), at_ms=0)


def test_epochs_begin_at_one():
    with pytest.raises(CommandRejected, match="begin at 1"):
        admit(given(), Fence(epoch=0), at_ms=0)
