"""What the end of one rank's program says: error file, host, exit status and printed lines, in that order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trackway_common.events import Authority, CausalRole
from trackway_common.events import TerminationReason as Reason

from trackway_trainer_agent.domain.exit_status import describe, reason_of, signal_of
from trackway_trainer_agent.domain.findings import Finding, error_fingerprint, fingerprint, user_frames
from trackway_trainer_agent.domain.host_findings import host_findings
from trackway_trainer_agent.domain.observations import ErrorSeen, ErrorSource, RankExit
from trackway_trainer_agent.domain.signatures import Part, Signature, of_error, of_line

STDERR_LINES = 12
"""Last words that stand beside an exit status."""
_EXPLAIN_THEMSELVES = frozenset({"SIGKILL", "SIGTERM", "SIGSEGV", "SIGILL"})
"""Signals that no broken connection and no printed line brings about; an abort may follow from either."""


def rank_findings(seen: RankExit) -> tuple[Finding, ...]:
    """Everything that this end says, the weightiest first; at most one finding is a candidate for the root."""
    findings = [*_rule(seen), *_error(seen), *host_findings(seen), *_lines(seen), *_status(seen)]
    return tuple(_parts(seen, sorted(findings, key=lambda finding: _weight(seen, finding))))


def _weight(seen: RankExit, finding: Finding) -> int:
    """Order of evidence; what is vague yields to what is specific, one step below it."""
    if finding.by_rule:
        return 20
    match finding.authority:
        case Authority.HOST if seen.host.killed_over_bound_bytes:
            return 25
        case Authority.EXIT_STATUS if signal_of(seen.exit_code, seen.signal) in _EXPLAIN_THEMSELVES:
            return 50
        case Authority.LOG_SIGNATURE if finding.reason is not Reason.USER_CODE_ERROR:
            return 60
        case Authority.EXIT_STATUS if finding.reason is Reason.PROCESS_CRASH:
            return 65
        case Authority.LOG_SIGNATURE:
            return 70
        case Authority.EXIT_STATUS:
            return 75
        case Authority.ERROR_FILE:
            return 30
        case _:
            return 40


def _parts(seen: RankExit, findings: list[Finding]) -> Iterator[Finding]:
    """Give each finding its part: one candidate a rank; what we stopped ourselves is none."""
    stopped = seen.stop_sent_at_ms is not None and not _failed_before_stop(seen)
    consequence = any(finding.role is CausalRole.CASCADE for finding in findings)
    claimed = False
    for finding in findings:
        if finding.reason is None:
            yield finding
        elif stopped:
            yield replace(finding, role=CausalRole.TEARDOWN)
        elif finding.role is CausalRole.CASCADE:
            yield finding
        elif consequence and not _explains_itself(seen, finding):
            yield replace(finding, role=CausalRole.CASCADE, reason=None, suggests=finding.reason)
        elif claimed:
            yield replace(finding, role=CausalRole.UNKNOWN, reason=None, suggests=finding.reason)
        else:
            claimed = True
            yield finding


def _explains_itself(seen: RankExit, finding: Finding) -> bool:
    by_signal = signal_of(seen.exit_code, seen.signal) in _EXPLAIN_THEMSELVES
    return (
        finding.by_rule
        or finding.authority is Authority.HOST
        or (finding.authority is Authority.EXIT_STATUS and by_signal)
    )


def _failed_before_stop(seen: RankExit) -> bool:
    """Both moments are of one clock, the node's."""
    return seen.error is not None and seen.stop_sent_at_ms is not None and seen.error.at_ms < seen.stop_sent_at_ms


def _rule(seen: RankExit) -> Iterator[Finding]:
    """The user knows best what the program means by this."""
    rule = seen.rule
    if rule is None or not _abnormal(seen):
        return
    yield Finding(
        role=CausalRole.INITIATING,
        authority=Authority.EXIT_STATUS if rule.matched.startswith("exit code") else Authority.LOG_SIGNATURE,
        source=f"rank {seen.rank} {rule.rule} of the run's spec",
        excerpt=rule.matched,
        at_ms=rule.at_ms,
        reason=rule.reason,
        confidence=0.95,
        cause=f"Rank {seen.rank} on {seen.node} ended as {rule.rule} of its spec says: {_one_line(rule.matched)}.",
        fingerprint=fingerprint(rule.reason.value, rule.rule),
        rank=seen.rank,
        node=seen.node,
        monotonic_ns=seen.monotonic_ns,
        by_rule=True,
    )


def _error(seen: RankExit) -> Iterator[Finding]:
    error = seen.error
    if error is None:
        return
    printed = error.source is ErrorSource.PRINTED
    said = f"{error.exception_type}: {error.message}"
    # Of a program that ended well it is the last error that it handled.
    handled = (None, CausalRole.UNKNOWN, 0.0)
    reason, role, confidence = _judge(error, said) if _abnormal(seen) else handled
    yield Finding(
        role=role,
        authority=Authority.LOG_SIGNATURE if printed else Authority.ERROR_FILE,
        source=f"rank {seen.rank} {'last printed traceback' if printed else 'error file'}",
        excerpt=_excerpt(error, said),
        at_ms=error.at_ms,
        reason=reason,
        confidence=min(confidence, 0.8) if printed else confidence,
        cause=f"Rank {seen.rank} raised {_one_line(said)}{_where(error)}.",
        fingerprint=error_fingerprint(error),
        rank=seen.rank,
        node=seen.node,
        monotonic_ns=error.monotonic_ns or seen.monotonic_ns,
    )


def _judge(error: ErrorSeen, said: str) -> tuple[Reason, CausalRole, float]:
    if error.trackway_reason is not None and error.trackway_reason in Reason.__members__:
        return Reason[error.trackway_reason], CausalRole.INITIATING, 0.99
    direct = of_error(said)
    signature = direct or next((found for cause in error.chain if (found := of_error(cause)) is not None), None)
    if signature is None:
        return Reason.USER_CODE_ERROR, CausalRole.INITIATING, 0.9
    if signature.part is Part.CONSEQUENCE:
        return signature.reason, CausalRole.CASCADE, 0.4
    return signature.reason, CausalRole.INITIATING, 0.95 if direct is not None else 0.85


def _lines(seen: RankExit) -> Iterator[Finding]:
    """The last printed line that is known; an error record says the same better."""
    if seen.error is not None or not _abnormal(seen):
        return
    for line in reversed(seen.stderr_tail):
        signature = of_line(line)
        if signature is not None:
            yield _line_finding(seen, line, signature)
            return


def _line_finding(seen: RankExit, line: str, signature: Signature) -> Finding:
    consequence = signature.part is Part.CONSEQUENCE
    return Finding(
        role=CausalRole.CASCADE if consequence else CausalRole.INITIATING,
        authority=Authority.LOG_SIGNATURE,
        source=f"rank {seen.rank} stderr",
        excerpt=line,
        at_ms=seen.ended_at_ms,
        reason=signature.reason,
        confidence=0.4 if consequence else 0.7,
        cause=f"Rank {seen.rank} printed: {_one_line(line)}.",
        fingerprint=fingerprint(signature.reason.value, line),
        rank=seen.rank,
        node=seen.node,
        monotonic_ns=seen.monotonic_ns,
    )


def _status(seen: RankExit) -> Iterator[Finding]:
    said = describe(seen.exit_code, seen.signal)
    reason, confidence = reason_of(seen.exit_code, seen.signal)
    yield Finding(
        role=CausalRole.INITIATING if reason else CausalRole.UNKNOWN,
        authority=Authority.EXIT_STATUS,
        source=f"rank {seen.rank} exit status",
        excerpt="\n".join([said, *(seen.stderr_tail[-STDERR_LINES:] if reason else ())]),
        at_ms=seen.ended_at_ms,
        reason=reason,
        confidence=confidence,
        cause=f"Rank {seen.rank} on {seen.node} {said} after step {seen.last_step}.",
        fingerprint=fingerprint(seen.signal or f"exit-{seen.exit_code}", *seen.stderr_tail[-1:]),
        rank=seen.rank,
        node=seen.node,
        monotonic_ns=seen.monotonic_ns,
    )


def _abnormal(seen: RankExit) -> bool:
    return seen.exit_code != 0 or seen.signal is not None


def _excerpt(error: ErrorSeen, said: str) -> str:
    frames = [f"  {frame.file}:{frame.line} in {frame.function}" for frame in error.frames[-5:]]
    causes = [f"  caused by {cause}" for cause in error.chain[:3]]
    return "\n".join([said, *causes, *frames])


def _where(error: ErrorSeen) -> str:
    step = "" if error.step is None else f" at step {error.step}"
    frames = user_frames(error)
    if not frames:
        return step
    return f"{step} ({frames[-1].file.rpartition('/')[2]}:{frames[-1].line} in {frames[-1].function})"


def _one_line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= 200 else first[:199] + "…"
