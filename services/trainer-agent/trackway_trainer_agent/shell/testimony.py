"""Everything that the ranks of an attempt said of themselves, as its receipt needs it. Plain bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trackway_common.events import MetricValue, PhaseSeconds, RankEnded

from trackway_trainer_agent.domain.observations import Observation
from trackway_trainer_agent.domain.phases import attempt_phases, newest
from trackway_trainer_agent.worker.records import TrainerExited, TrainerStarted


@dataclass(slots=True)
class Testimony:
    """Of one attempt; filled while its ranks are drained."""

    observations: list[Observation] = field(default_factory=list)
    trainers: dict[int, TrainerStarted] = field(default_factory=dict)
    ends: dict[int, RankEnded] = field(default_factory=dict)
    last_steps: dict[int, int] = field(default_factory=dict)
    first_step: tuple[int, int] | None = None
    """Step, and when it was finished, in ms."""
    last_metrics: dict[int, tuple[MetricValue, ...]] = field(default_factory=dict)
    """Of the last step that each rank reported values for."""

    clocks: dict[int, PhaseSeconds] = field(default_factory=dict)
    """Where each rank's time went, by its session's last word."""

    def measured(self, phases: PhaseSeconds | None) -> None:
        """A rank said where its time went."""
        if phases is not None:
            self.clocks[phases.rank] = phases

    def took_step(self, step: int, at_ms: int) -> None:
        """Some rank finished its first step; the earliest counts."""
        if self.first_step is None or at_ms < self.first_step[1]:
            self.first_step = (step, at_ms)

    def ended(self, rank: int, seen: TrainerExited) -> None:
        """A rank's program ended."""
        self.last_steps[rank] = max(seen.last_step, self.last_steps.get(rank, 0))
        self.ends[rank] = RankEnded(
            rank=rank,
            exit_code=seen.exit_code,
            signal=seen.signal,
            last_step=seen.last_step,
            peak_memory_bytes=seen.peak_memory_bytes,
        )

    @property
    def last_step(self) -> int:
        """The last step that any rank finished."""
        return max(self.last_steps.values(), default=0)

    @property
    def phases(self) -> PhaseSeconds | None:
        """Where the attempt's time went."""
        return attempt_phases(self.clocks.values())

    @property
    def last_progress_at(self) -> datetime | None:
        """When any rank's session last said something."""
        return newest(self.clocks.values()) if self.clocks else None

    @property
    def metrics(self) -> tuple[MetricValue, ...]:
        """Last values of the lowest rank that reported any."""
        return self.last_metrics[min(self.last_metrics)] if self.last_metrics else ()
