"""A quiet rank is signalled once per quiet period, and healed by the next heartbeat."""

from __future__ import annotations

from trackway_common.events import RankHeartbeat, SignalKind, TelemetryBatch
from trackway_observer.watch.pulses import Pulses
from trackway_observer.watch.rules import Thresholds

LIMITS = Thresholds(heartbeat_s=10, progress_s=60)


class World:
    """A watch with a clock that tests move."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pulses = Pulses(LIMITS, lambda: self.now_s, lambda: int(self.now_s * 1000))

    def beat(self, step: int, rank: int = 0, attempt: int = 1) -> None:
        heartbeat = RankHeartbeat(at_ms=0, last_step=step)
        self.pulses.hear(TelemetryBatch(run_id="r", attempt=attempt, rank=rank, heartbeat=heartbeat))

    def after(self, seconds: float) -> list[SignalKind]:
        self.now_s += seconds
        return [signal.kind for signal in self.pulses.due()]


def test_a_beating_rank_that_progresses_is_left_alone():
    world = World()
    for step in range(1, 200):
        world.beat(step)
        assert world.after(1) == []


def test_a_silent_rank_is_signalled_once():
    world = World()
    world.beat(5)
    assert world.after(9) == []
    assert world.after(2) == [SignalKind.NO_HEARTBEAT]
    assert world.after(100) == []


def test_a_rank_that_beats_again_may_be_signalled_again():
    world = World()
    world.beat(5)
    assert world.after(11) == [SignalKind.NO_HEARTBEAT]
    world.beat(6)
    assert world.after(1) == []
    assert world.after(11) == [SignalKind.NO_HEARTBEAT]


def test_a_rank_that_beats_without_progress_is_signalled_once():
    world = World()
    seen = []
    for _ in range(200):
        world.beat(7)
        seen += world.after(1)
    assert seen == [SignalKind.NO_STEP_PROGRESS]


def test_before_the_first_step_no_progress_is_expected():
    world = World()
    for _ in range(200):
        world.beat(0)
        assert world.after(1) == []


def test_an_ended_attempt_is_forgotten_and_its_successor_is_not():
    world = World()
    world.beat(5, attempt=1)
    world.beat(1, attempt=2)
    world.pulses.forget("r", 1)
    assert world.after(11) == [SignalKind.NO_HEARTBEAT]


def test_every_instance_gives_a_quiet_period_the_same_id():
    ids = []
    for start in (0.0, 500.0):
        world = World()
        world.now_s = start
        world.beat(5)
        world.now_s += 11
        ids += [signal.signal_id for signal in world.pulses.due()]
    assert ids[0] == ids[1]


def test_a_batch_without_heartbeat_says_nothing():
    world = World()
    world.pulses.hear(TelemetryBatch(run_id="r", attempt=1, rank=0))
    assert world.after(100) == []
