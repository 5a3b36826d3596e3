"""Checkpoints of an attempt, from what its ranks tell."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from trackway_trainer_agent.domain.saves import (
    Abandon,
    Announce,
    PartCaptured,
    PartFailed,
    PartPersisted,
    RankOver,
    RequestCommit,
    SaveBook,
    SaveEvent,
    SaveIntent,
    react,
)


def captured(rank: int, nonce: str = "aa", parts: int = 2) -> PartCaptured:
    return PartCaptured(rank=rank, step=10, nonce=nonce, size_bytes=100, blocked_seconds=0.1 * (rank + 1), parts=parts)


def persisted(rank: int, nonce: str = "aa", parts: int = 2) -> PartPersisted:
    return PartPersisted(rank=rank, step=10, nonce=nonce, size_bytes=100, parts=parts, metrics=(("loss", float(rank)),))


def over(rank: int) -> RankOver:
    return RankOver(rank=rank, why="SIGKILL")


def run(*events: SaveEvent, world_size: int = 2) -> tuple[SaveBook, list[SaveIntent]]:
    book, intents = SaveBook(world_size=world_size), []
    for event in events:
        book, made = react(book, event)
        intents += made
    return book, intents


ANNOUNCED = Announce(step=10, nonce="aa", size_bytes=200, blocked_seconds=0.2)
REQUESTED = RequestCommit(step=10, nonce="aa", parts=2, metrics=(("loss", 0.0),))


def test_announced_when_all_captured_and_requested_when_all_persisted() -> None:
    book, intents = run(captured(0), captured(1))
    assert intents == [ANNOUNCED]
    assert book.in_flight == ("aa",)
    book, intents = run(captured(0), captured(1), persisted(1), persisted(0))
    assert intents == [ANNOUNCED, REQUESTED]
    assert book.in_flight == ()
    assert [save.nonce for save in book.complete] == ["aa"]


def test_a_fast_rank_may_persist_before_the_other_captured() -> None:
    _, intents = run(captured(0), persisted(0), captured(1), persisted(1))
    assert intents == [ANNOUNCED, REQUESTED]


def test_rank_over_before_its_receipt_abandons() -> None:
    book, intents = run(captured(0), captured(1), persisted(0), over(1))
    assert intents == [ANNOUNCED, Abandon(step=10, nonce="aa", why="rank 1 ended before its receipt: SIGKILL")]
    assert book.in_flight == ()


def test_rank_over_after_its_receipt_changes_nothing() -> None:
    _, intents = run(captured(0), captured(1), persisted(1), over(1), persisted(0))
    assert intents == [ANNOUNCED, REQUESTED]


def test_rank_that_died_before_its_capture_abandons_what_others_captured() -> None:
    _, intents = run(captured(0), over(1))
    assert intents == [Abandon(step=10, nonce="aa", why="rank 1 ended before its receipt: SIGKILL")]
    _, intents = run(over(1), captured(0))
    assert intents == [Abandon(step=10, nonce="aa", why="rank 1 ended before its receipt")]


def test_a_failed_part_abandons_once() -> None:
    failed = PartFailed(rank=1, step=10, nonce="aa", why="no space")
    _, intents = run(captured(0), captured(1), failed, failed, over(1), persisted(0))
    assert intents == [ANNOUNCED, Abandon(step=10, nonce="aa", why="rank 1: no space")]


def test_a_directory_needs_one_receipt() -> None:
    _, intents = run(persisted(0, parts=1), over(1))
    assert intents == [
        Announce(step=10, nonce="aa", size_bytes=100, blocked_seconds=0.0),
        RequestCommit(step=10, nonce="aa", parts=1, metrics=(("loss", 0.0),)),
    ]
    _, intents = run(over(1), persisted(0, parts=1))
    assert isinstance(intents[-1], RequestCommit)


def test_a_finished_folder_is_in_flight_until_it_is_copied_whatever_other_ranks_do() -> None:
    announced = Announce(step=10, nonce="aa", size_bytes=100, blocked_seconds=0.1)
    book, intents = run(captured(0, parts=1), over(1))
    assert (intents, book.in_flight) == ([announced], ("aa",))
    _, intents = run(over(1), captured(0, parts=1), persisted(0, parts=1))
    assert [type(intent) for intent in intents] == [Announce, RequestCommit]
    _, intents = run(captured(0, parts=1), over(0))
    assert intents[1:] == [Abandon(step=10, nonce="aa", why="rank 0 ended before its receipt: SIGKILL")]


EVENTS = st.one_of(
    st.builds(captured, st.integers(0, 2), st.sampled_from(["aa", "bb"]), st.just(3)),
    st.builds(persisted, st.integers(0, 2), st.sampled_from(["aa", "bb"]), st.just(3)),
    st.builds(over, st.integers(0, 2)),
    st.builds(PartFailed, rank=st.integers(0, 2), step=st.just(10), nonce=st.just("aa"), why=st.just("io")),
)


@settings(max_examples=300, deadline=None)
@given(events=st.lists(EVENTS, max_size=30))
def test_each_checkpoint_has_one_fate(events) -> None:
    book, intents = run(*events, world_size=3)
    fates = [(type(i).__name__, i.nonce) for i in intents if not isinstance(i, Announce)]
    assert len({nonce for _, nonce in fates}) == len(fates)
    again, repeated = book, []
    for event in events:
        again, made = react(again, event)
        repeated += made
    assert not [i for i in repeated if i.nonce in {nonce for _, nonce in fates}]
    for nonce in {nonce for fate, nonce in fates if fate == "RequestCommit"}:
        receipts = {e.rank for e in events if isinstance(e, PartPersisted) and e.nonce == nonce}
        assert receipts == {0, 1, 2}
