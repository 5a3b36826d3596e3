"""What happened to a rank, as it is recorded: the one place where its records are made and its step is known."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal

from trackway_common.rank_protocol.phases import Phases

from trackway_trainer_agent.worker.line_gate import LineGate
from trackway_trainer_agent.worker.progress import BUSY_PERCENT, Progress
from trackway_trainer_agent.worker.record_buffer import RecordBuffer
from trackway_trainer_agent.worker.records import (
    DrainBatch,
    Fact,
    FirstStepReported,
    LogLine,
    PhasesMeasured,
    RankPhase,
    ResourceSample,
    StepMetrics,
)

STDERR_KEPT = 400
"""Lines: a traceback through a deep stack of frameworks is found whole."""
MAX_BATCH = 10_000


class Journal:
    """A rank's history. Safe from several threads."""

    def __init__(self, buffer: RecordBuffer) -> None:
        self._buffer = buffer
        self._lock = threading.Lock()
        self._stderr: deque[str] = deque(maxlen=STDERR_KEPT)
        self._gate: LineGate[LogLine] = LineGate()
        self._stepped = False
        self.phase = RankPhase.IDLE
        self.last_step = 0
        self.progress = Progress()
        self.on_line: Callable[[str], None] = lambda text: None
        """Told of every printed line, also of those that a flood makes be left out."""
        self.phases: PhasesMeasured | None = None
        """By the session's last word; absent where none was opened."""

    @property
    def newest_record(self) -> int:
        """Number of the last record."""
        return self._buffer.newest

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of standard error."""
        return tuple(self._stderr)

    def fact(self, fact: Fact) -> None:
        """Record something that must not be lost."""
        self._buffer.append(fact)

    def end(self, fact: Fact | None = None) -> None:
        """Record the last fact, so that who sees the phase has the fact in the same batch."""
        with self._lock:
            if fact is not None:
                self._buffer.append(fact)
            self.phase = RankPhase.ENDED

    def step(self, step: int, values: Mapping[str, float], at_ms: int) -> None:
        """Record the values of a finished step."""
        self.progress.stepped()
        with self._lock:
            if not self._stepped:
                self._buffer.append(FirstStepReported(step=step, at_ms=at_ms))
            self._stepped = True
            self.last_step = max(self.last_step, step)
        numbers = tuple((name, float(value)) for name, value in values.items())
        self._buffer.append(StepMetrics(step=step, values=numbers, at_ms=at_ms))

    def measured(self, phases: Phases, at_ms: int) -> PhasesMeasured:
        """Keep where the session's time went: only the newest counts."""
        self.phases = PhasesMeasured(phases=phases, at_ms=at_ms)
        return self.phases

    def line(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Record a line of output."""
        self.progress.active()
        self.on_line(text)
        if stream == "stderr":
            self._stderr.append(text)
        line = LogLine(stream=stream, text=text, step=self.last_step, at_ms=now_ms())
        for passed in self._gate.take(line):
            self._buffer.append(passed)

    def end_of_output(self) -> None:
        """No line comes any more: the last ones are kept, whatever there were before."""
        for line in self._gate.release():
            self._buffer.append(line)

    def sample(self, sample: ResourceSample) -> None:
        """Record a measurement."""
        if sample.cpu_percent > BUSY_PERCENT:
            self.progress.active()
        self._buffer.append(sample)

    def drain(self, after: int, limit: int) -> DrainBatch:
        """Records behind the cursor; what it passed is read, so telemetry up to there is forgotten."""
        with self._lock:
            phase = self.phase
            records = self._buffer.read(after, min(limit, MAX_BATCH))
        cursor = records[-1].number if records else after
        dropped = self._buffer.dropped
        return DrainBatch(
            records=records,
            cursor=cursor,
            more=cursor < self._buffer.newest,
            phase=phase,
            last_step=self.last_step,
            dropped_metrics=dropped.metrics,
            dropped_logs=dropped.logs + self._gate.dropped,
            at_ms=now_ms(),
            phases=self.phases,
            overdue=self.progress.overdue() if phase is RankPhase.RUNNING else None,
        )

    def close(self) -> None:
        """Close the buffer; nothing can be read any more."""
        self._buffer.close()


def now_ms() -> int:
    """The node's wall clock."""
    return time.time_ns() // 1_000_000
