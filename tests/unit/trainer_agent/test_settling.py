"""The settle window."""

from __future__ import annotations

from trackway_trainer_agent.domain.settling import (
    Close,
    KeepWatching,
    StopSurvivors,
    Window,
    next_move,
    rank_ended,
    stop_ordered,
    survivors_stopped,
)


def test_nothing_is_due_while_all_run() -> None:
    assert next_move(Window(world_size=2), now_s=1e6) == KeepWatching()


def test_a_clean_end_leaves_the_others_their_time() -> None:
    window = rank_ended(Window(world_size=2), 0, failed=False, now_s=10.0)
    assert next_move(window, now_s=1e6) == KeepWatching()


def test_closes_at_once_when_every_rank_has_ended() -> None:
    window = rank_ended(Window(world_size=2), 0, failed=False, now_s=10.0)
    assert next_move(rank_ended(window, 1, failed=False, now_s=99.0), now_s=99.0) == Close(silent=())


def test_survivors_are_stopped_after_300_ms_and_once() -> None:
    window = rank_ended(Window(world_size=3), 1, failed=True, now_s=10.0)
    assert next_move(window, now_s=10.1) == KeepWatching(until_s=10.3)
    assert next_move(window, now_s=10.31) == StopSurvivors(ranks=(0, 2))
    assert next_move(survivors_stopped(window), now_s=10.4) == KeepWatching(until_s=15.0)


def test_never_longer_than_five_seconds() -> None:
    window = survivors_stopped(rank_ended(Window(world_size=3), 1, failed=True, now_s=10.0))
    assert next_move(window, now_s=14.9) == KeepWatching(until_s=15.0)
    assert next_move(window, now_s=15.0) == Close(silent=(0, 2))


def test_a_second_death_does_not_extend_the_window() -> None:
    window = rank_ended(Window(world_size=3), 1, failed=True, now_s=10.0)
    assert rank_ended(window, 2, failed=True, now_s=14.0).opened_at == 10.0


def test_an_ordered_stop_gives_the_grace_on_top() -> None:
    window = stop_ordered(Window(world_size=1), now_s=10.0, grace_s=30.0)
    assert next_move(window, now_s=39.0) == KeepWatching(until_s=45.0)
    assert next_move(window, now_s=45.0) == Close(silent=(0,))
