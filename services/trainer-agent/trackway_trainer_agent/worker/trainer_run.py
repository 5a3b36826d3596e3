"""A trainer that runs, with everything that watches it, until what is known of its end is gathered."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial

from trackway_common.errors import Unavailable

from trackway_trainer_agent.worker.environment_report import observe_environment
from trackway_trainer_agent.worker.error_files import read_error
from trackway_trainer_agent.worker.failure_rules import RuleWatch
from trackway_trainer_agent.worker.host_watch import HostWatch
from trackway_trainer_agent.worker.journal import Journal, now_ms
from trackway_trainer_agent.worker.output_lines import read_lines
from trackway_trainer_agent.worker.preparation import Prepared
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import EnvironmentReported, TrainerExited, TrainerStarted
from trackway_trainer_agent.worker.resource_sampler import ResourceSampler
from trackway_trainer_agent.worker.trainer_process import ProcessEnd, TrainerProcess
from trackway_trainer_agent.worker.workplace import Workplace

logger = logging.getLogger(__name__)
STDERR_TAIL = 50
NICENESS = 10
LAST_WORDS_S = 5.0
"""For reading what a dead trainer left in its pipes."""


class TrainerRun:
    """Begins with the process; ``wait`` belongs to one thread."""

    def __init__(self, prepared: Prepared, *, spec: RankSpec, place: Workplace, journal: Journal) -> None:
        """Start the trainer; raises ``ExecutionFailed``."""
        self._place = place
        self._journal = journal
        self._device = device = ",".join(spec.visible_devices) or "cpu"
        self._rules = RuleWatch(spec.failure_rules)
        self._host = HostWatch(spec)
        self._started_at_ms = self._ended_at_ms = now_ms()
        self._monotonic_ns = time.monotonic_ns()
        self.process = TrainerProcess(prepared.argv, folder=prepared.folder, environment=prepared.environment)
        journal.fact(TrainerStarted(pid=self.process.pid, argv=prepared.argv, device=device, at_ms=now_ms()))
        self._host.follow(self.process.pid, self.process.kill)
        journal.on_line = self._rules.line
        stdout, stderr = self.process.take_output()
        self._watchers = (
            read_lines(stdout, partial(journal.line, "stdout")),
            read_lines(stderr, partial(journal.line, "stderr")),
            self._report_environment(prepared),
        )
        self._sampler = ResourceSampler(self.process.pid, journal.sample)

    def wait(self, ended: Callable[[], None]) -> ProcessEnd:
        """Wait until the trainer and all that it started are gone and their output was read.

        ``ended`` is called as soon as the trainer ended, long before that it may be.
        """

        def note() -> None:
            self._ended_at_ms, self._monotonic_ns = now_ms(), time.monotonic_ns()
            ended()

        end = self.process.wait(note)
        self._sampler.stop()
        self._host.finish()
        for watcher in self._watchers:
            watcher.join(LAST_WORDS_S)
        self._journal.end_of_output()
        return end

    def evidence(self, end: ProcessEnd, *, stopped_at_ms: int | None) -> TrainerExited:
        """All that this node knows about the end; call it after ``wait`` and after the SDK's last words."""
        return TrainerExited(
            exit_code=end.exit_code,
            signal=end.signal,
            error=read_error(self._place.error_file, self._place.torchelastic_error_file, self._journal.stderr),
            stderr_tail=self._journal.stderr[-STDERR_TAIL:],
            last_step=self._journal.last_step,
            peak_memory_bytes=max(end.peak_memory_bytes, self._sampler.peak_memory_bytes),
            oom_kills=self._host.oom_kills,
            last_oom_kill_at_ms=self._host.last_oom_kill_at_ms,
            stop_requested=stopped_at_ms is not None,
            stopped_at_ms=stopped_at_ms,
            started_at_ms=self._started_at_ms,
            ended_at_ms=self._ended_at_ms,
            monotonic_ns=self._monotonic_ns,
            phases=self._journal.phases,
            host=self._host.report(self._place.root),
            rule=self._rules.at_exit(end.exit_code),
        )

    def _report_environment(self, prepared: Prepared) -> threading.Thread:
        def report() -> None:
            # Inherited by the process that looks: the trainer's start comes first.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
            try:
                seen = observe_environment(prepared.python, prepared.environment)
            except Unavailable as error:
                logger.warning("environment not observed", extra={"why": str(error)})
                return
            self._journal.fact(
                EnvironmentReported(
                    python_version=seen.python_version,
                    torch_version=seen.torch_version,
                    device=self._device,
                    host=seen.host,
                    environment_digest=seen.digest,
                    report_json=seen.report_json,
                )
            )

        reporter = threading.Thread(target=report, name="environment", daemon=True)
        reporter.start()
        return reporter
