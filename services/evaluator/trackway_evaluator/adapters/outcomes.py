"""What a try left behind, and what its end says about it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trackway_common.checkpoint.json_codec import Malformed
from trackway_common.events import Authority, CausalRole, EvaluationFailure, Evidence

from trackway_evaluator.protocol import WorkFailure, WorkResult, read_record

EXCERPT_BYTES = 2048
"""What a fact carries of a log; the whole of it is a blob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The try wrote a result."""

    result: WorkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The try ended without one."""

    failure: EvaluationFailure
    message: str
    evidence: tuple[Evidence, ...] = ()


Outcome: TypeAlias = Scored | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a process ended, as far as it was seen."""

    status: int | None
    """Exit status, negative for a signal; None where nobody saw it."""
    killed_for_memory: bool = False
    """The kernel killed a process for memory in the evaluator's cgroup meanwhile."""


def read_outcome(attempt: Path, end: End) -> Outcome:
    """Outcome of a try whose process is gone; what it wrote counts more than how it ended."""
    try:
        result = read_record(WorkResult, attempt / "result.json")
        failure = read_record(WorkFailure, attempt / "failure.json")
    except Malformed as error:
        return Broken(failure=EvaluationFailure.CRASH, message=f"it wrote no valid result: {error}")
    if result is not None:
        return Scored(result=result)
    evidence = tuple(filter(None, (_end_evidence(end), _log_evidence(attempt / "stderr.log"))))
    if failure is not None:
        told = _evidence("failure.json", Authority.ERROR_FILE, failure.traceback)
        return Broken(failure=_word(failure.failure), message=failure.message, evidence=(told, *evidence))
    return Broken(failure=_failure(end), message=_described(end), evidence=evidence)


def _failure(end: End) -> EvaluationFailure:
    if end.status == -signal.SIGKILL and end.killed_for_memory:
        return EvaluationFailure.OOM
    return EvaluationFailure.CRASH


def _described(end: End) -> str:
    if end.status is None:
        return "the evaluation process ended without a result, and nobody saw how"
    if end.status >= 0:
        return f"the evaluation process ended with exit code {end.status} and no result"
    why = " while the kernel was killing for memory" if end.killed_for_memory else ""
    return f"the evaluation process was killed by {_signal_name(-end.status)}{why}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end_evidence(end: End) -> Evidence | None:
    if end.status is None:
        return None
    return _evidence("exit status of the evaluation process", Authority.EXIT_STATUS, _described(end))


def _log_evidence(log: Path) -> Evidence | None:
    try:
        text = log.read_bytes()[-EXCERPT_BYTES:].decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    return _evidence("last output of the evaluation process", Authority.LOG_SIGNATURE, text) if text else None


def _evidence(source: str, authority: Authority, excerpt: str) -> Evidence:
    cut = excerpt.encode()[-EXCERPT_BYTES:].decode(errors="ignore")
    return Evidence(source=source, authority=authority, role=CausalRole.INITIATING, excerpt=cut)


def _word(failure: str) -> EvaluationFailure:
    try:
        return EvaluationFailure(failure)
    except ValueError:
        return EvaluationFailure.CRASH
