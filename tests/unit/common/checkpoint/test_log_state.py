"""The fold, and what it refuses to believe."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.checkpoint.admission import admit
from trackway_common.checkpoint.entries import (
    Commit,
    Deleted,
    Fence,
    Head,
    Hold,
    LogEntry,
    Quarantine,
    Release,
    Supersede,
    Tombstone,
)
from trackway_common.checkpoint.log_state import HEAD_COMMITS, LogState, fold, head_after
from trackway_common.errors import CommandRejected, CorruptLog, Fenced

slots = st.integers(1, 25)
commands = st.one_of(
    st.builds(Fence, epoch=st.integers(1, 6)),
    st.integers(1, 6).map(lambda epoch: commit_of(epoch=epoch)),
    st.builds(
        Hold,
        commit_slot=slots,
        consumer=st.sampled_from("ab"),
        reason=st.just("r"),
        ttl_seconds=st.sampled_from([0, 5]),
    ),
    st.builds(Release, commit_slot=slots, consumer=st.sampled_from("ab")),
    st.builds(Supersede, commit_slot=slots, by_policy=st.just("p")),
    st.builds(Quarantine, commit_slot=slots, why=st.just("w")),
    st.builds(Tombstone, commit_slot=slots),
    st.builds(Deleted, commit_slot=slots, freed_bytes=st.just(1)),
)


def commit_of(epoch=1, nonce="abcd", step=1):
    path = f"data/s{step:09d}-e{epoch:04d}-{nonce}"
    return Commit(epoch=epoch, nonce=nonce, step=step, path=path, manifest_digest=f"sha256:{nonce}")


def entry_after(state: LogState, body, at_ms=0) -> LogEntry:
    slot = state.slot + 1
    head = head_after(state.head, slot, body)
    return LogEntry(slot=slot, at_ms=at_ms, writer="w", token="t", body=body, head=head)


def state_of(*bodies) -> LogState:
    state = LogState()
    for body in bodies:
        state = fold(state, (entry_after(state, body),))
    return state


@given(st.lists(commands, max_size=60))
def test_whatever_is_admitted_keeps_the_promises(bodies):
    state, at_ms, entries = LogState(), 0, []
    for number, drawn in enumerate(bodies):
        at_ms += 1000
        body = drawn
        if isinstance(drawn, Commit):
            body = commit_of(epoch=drawn.epoch, nonce=f"n{number:04d}", step=number)
        try:
            existing = admit(state, body, at_ms=at_ms)
        except (CommandRejected, Fenced):
            continue
        if existing is not None:
            assert 0 < existing <= state.slot
            continue
        before, entry = state, entry_after(state, body, at_ms)
        entries.append(entry)
        state = fold(state, (entry,))
        if before.restorable and not isinstance(body, Quarantine):
            assert state.restorable, "a promise of admission: no deletion takes the last restorable commit"
        if isinstance(body, Tombstone):
            gone = before.commits[body.commit_slot]
            assert not gone.held(at_ms)
            assert not gone.restorable or len(state.restorable) >= 2
            assert not gone.restorable or state.restorable[0].slot > gone.slot
        assert state.head.fence >= before.head.fence
    assert fold(LogState(), entries) == state
    newest = [commit.slot for commit in state.restorable][:HEAD_COMMITS]
    in_head = [commit.slot for commit in reversed(state.head.commits)]
    assert in_head == newest[: len(in_head)], "the head names the newest restorable commits"


def test_the_head_keeps_the_newest_eight():
    state = state_of(Fence(epoch=1), *(commit_of(nonce=f"n{i:04d}", step=i) for i in range(12)))
    assert [commit.slot for commit in state.head.commits] == list(range(6, 14))
    assert len(state.restorable) == 12
    assert state.restorable[0].slot == 13


def test_a_quarantined_commit_leaves_the_head():
    state = state_of(
        Fence(epoch=1), commit_of(nonce="aaaa"), commit_of(nonce="bbbb"), Quarantine(commit_slot=3, why="x")
    )
    assert [commit.slot for commit in state.head.commits] == [2]
    assert state.commits[3].quarantined_why == "x"
    assert not state.commits[3].restorable


def test_a_hold_with_time_to_live_ends_by_itself():
    state = state_of(Fence(epoch=1), commit_of())
    state = fold(state, (entry_after(state, Hold(commit_slot=2, consumer="c", reason="r", ttl_seconds=5), at_ms=1000),))
    assert state.commits[2].held(5999)
    assert not state.commits[2].held(6000)


def test_a_consumer_has_one_hold_and_releases_only_its_own():
    hold = Hold(commit_slot=2, consumer="a", reason="r")
    state = state_of(Fence(epoch=1), commit_of(), hold, replace(hold, consumer="b"), replace(hold, reason="again"))
    assert [(h.consumer, h.reason) for h in state.commits[2].holds] == [("b", "r"), ("a", "again")]
    state = fold(state, (entry_after(state, Release(commit_slot=2, consumer="a")),))
    assert [h.consumer for h in state.commits[2].holds] == ["b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slot": 9}, "slot 4 is missing"),
        ({"head": Head(fence=1)}, "head does not follow"),
        ({"body": Fence(epoch=1)}, "head does not follow|fence 1 after fence 1"),
        ({"body": commit_of(epoch=2, nonce="eeee")}, "head does not follow|under fence"),
    ],
)
def test_what_no_correct_writer_wrote_is_corrupt(change, message):
    state = state_of(Fence(epoch=1), commit_of(nonce="aaaa"), commit_of(nonce="bbbb"))
    good = entry_after(state, commit_of(nonce="cccc"))
    with pytest.raises(CorruptLog, match=message):
        fold(state, (replace(good, **change),))


@pytest.mark.parametrize("body", [Fence(epoch=1), commit_of(epoch=2, nonce="eeee"), commit_of(epoch=0, nonce="eeee")])
def test_an_epoch_out_of_order_is_corrupt_even_with_a_right_head(body):
    state = state_of(Fence(epoch=1), commit_of(nonce="aaaa"))
    with pytest.raises(CorruptLog, match="fence"):
        fold(state, (entry_after(state, body),))


def test_an_entry_about_no_commit_is_corrupt():
    state = state_of(Fence(epoch=1))
    with pytest.raises(CorruptLog, match="no commit in slot 1"):
        fold(state, (entry_after(state, Supersede(commit_slot=1, by_policy="p")),))
