"""What the watch remembers: one pulse a rank."""

from __future__ import annotations

from collections.abc import Callable

from trackway_common.events import Signal, TelemetryBatch

from trackway_observer.watch.rules import Pulse, Rank, Thresholds, heard, noted, overdue


class Pulses:
    """Pulses of every rank that was heard from and whose attempt has not ended."""

    def __init__(self, limits: Thresholds, now_s: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._limits = limits
        self._now_s = now_s
        self._now_ms = now_ms
        self._pulses: dict[Rank, Pulse] = {}

    def hear(self, batch: TelemetryBatch) -> None:
        """Take in a batch; only its heartbeat matters here."""
        if batch.heartbeat is not None:
            rank = Rank(run_id=batch.run_id, attempt=batch.attempt, rank=batch.rank)
            self._pulses[rank] = heard(self._pulses.get(rank), batch.heartbeat.last_step, self._now_s())

    def forget(self, run_id: str, attempt: int) -> None:
        """Stop watching an attempt and those before it."""
        self._pulses = {
            rank: pulse for rank, pulse in self._pulses.items() if rank.run_id != run_id or rank.attempt > attempt
        }

    def due(self) -> tuple[Signal, ...]:
        """Return the signals that are due now, each once for a quiet period."""
        now_s, now_ms = self._now_s(), self._now_ms()
        signals: list[Signal] = []
        for rank, pulse in list(self._pulses.items()):
            given = overdue(rank, pulse, now_s, now_ms, self._limits)
            self._pulses[rank] = noted(pulse, given)
            signals.extend(given)
        return tuple(signals)
