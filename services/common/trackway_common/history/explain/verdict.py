"""The first lines: reason, cause, and what followed."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.events import NextMove, RunPhase
from trackway_common.history.explain.sections import (
    AttemptLine,
    SecondLook,
    Verdict,
)
from trackway_common.history.explain.subject import Subject
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.receipt.build import attempt_receipt
from trackway_common.history.receipt.outcome_columns import IN_PROGRESS, outcome_columns
from trackway_common.history.wording import count_text, seconds_text
from trackway_common.reasons import policy_of

_RUN_STATES = {
    RunPhase.SUCCEEDED: "The run SUCCEEDED.",
    RunPhase.EVALUATING: "The run is EVALUATING.",
    RunPhase.RUNNING: "The run is RUNNING.",
    RunPhase.QUEUED: "The run is QUEUED.",
}


def verdict_of(subject: Subject) -> Verdict:
    """What happened to the attempt, as it was judged when the decision was made; a later verdict stands beside it."""
    outcome = outcome_columns(replace(subject.attempt, reclassified=None))
    if outcome.termination_reason == IN_PROGRESS:
        return _running(subject)
    return Verdict(
        headline=outcome.termination_reason,
        domain=outcome.domain,
        confidence=outcome.confidence,
        sentence=outcome.cause or _hint(subject),
        outcome=" ".join(part for part in (_followed(subject), run_sentence(subject.history)) if part),
    )


def second_look_of(attempt: AttemptHistory) -> SecondLook | None:
    """The newest other verdict of a later classifier."""
    look, ended = attempt.reclassified, attempt.ended
    if look is None:
        return None
    return SecondLook(
        at=look.reclassified_at,
        reason=look.reason,
        domain=look.domain,
        confidence=look.confidence,
        cause=look.cause,
        classifier_version=look.classifier_version,
        version_before=ended.classifier_version if ended else "",
        actor=look.actor,
    )


def run_verdict(history: RunHistory) -> Verdict:
    """What happened to a run that no attempt of which was ever placed."""
    if history.refused:
        return Verdict(
            headline=RunPhase.REFUSED,
            domain="WORKLOAD",
            confidence=1.0,
            sentence=history.refused.message,
            outcome="Nothing was queued, nothing ran and nothing was charged.",
        )
    said = run_sentence(history) if history.phase in {RunPhase.CANCELLED, RunPhase.QUEUED} else history.phase_message
    return Verdict(
        headline=history.phase,
        domain="",
        confidence=None,
        sentence=said or run_sentence(history),
        outcome="No attempt was placed." if history.ended else "No attempt was placed yet.",
    )


def run_sentence(history: RunHistory) -> str:
    """Where the run is now."""
    tried = count_text(sum(1 for a in history.attempts if a.placed or a.refused), "attempt")
    match history.phase:
        case RunPhase.SUCCEEDED:
            return f"The run SUCCEEDED after {tried}."
        case RunPhase.FAILED:
            return f"The run FAILED after {tried} ({history.phase_reason})."
        case RunPhase.HELD:
            return f"The run is HELD for a person ({history.phase_reason})."
        case RunPhase.CANCELLED:
            by = f" by {history.cancel.actor}" if history.cancel else ""
            why = f": {history.cancel.reason}" if history.cancel and history.cancel.reason else ""
            return f"The run was CANCELLED{by} after {tried}{why}."
    return _RUN_STATES.get(history.phase, "")


def attempt_lines(subject: Subject) -> tuple[AttemptLine, ...]:
    """Every attempt of the run; empty when there is only one."""
    begun = [a for a in subject.history.attempts if a.placed or a.refused]
    return tuple(_line(subject, attempt) for attempt in begun) if len(begun) > 1 else ()


def _line(subject: Subject, attempt: AttemptHistory) -> AttemptLine:
    seen = subject.surroundings.last_seen.get(attempt.attempt)
    receipt = attempt_receipt(subject.history, attempt.attempt, last_seen=seen)
    return AttemptLine(
        attempt=attempt.attempt,
        reason=receipt.outcome.termination_reason,
        resumed_from_step=receipt.lineage.resumed_from_step,
        first_step=receipt.lineage.first_step,
        last_step=receipt.lineage.last_step,
        steps_lost=receipt.lineage.steps_lost,
        gpu_seconds=receipt.money.gpu_seconds,
        next_move=receipt.retry.next_move,
        explained=attempt.attempt == subject.attempt.attempt,
    )


def _running(subject: Subject) -> Verdict:
    attempt, receipt = subject.attempt, subject.receipt
    seen = subject.surroundings.last_seen.get(attempt.attempt)
    held_s = (subject.as_of - attempt.placed.placed_at).total_seconds() if attempt.placed else 0.0
    step = f" Last step seen: {seen.step}." if seen and seen.step else ""
    sentence = f"The attempt is {receipt.outcome.state}, {seconds_text(held_s)} after its placement.{step}"
    last = receipt.lineage.last_committed_step
    kept = f"Committed up to step {last}: a failure now would lose what follows it." if last is not None else ""
    nothing = "" if kept else "Nothing is committed yet: a failure now would lose everything."
    return Verdict(headline=IN_PROGRESS, domain="", confidence=None, sentence=sentence, outcome=kept or nothing)


def _followed(subject: Subject) -> str:
    decision, after = subject.attempt.decision, subject.next
    if decision is None:
        undecided = subject.history.phase is RunPhase.RUNNING
        return "The scheduler has not decided yet what follows." if undecided else ""
    match decision.move:
        case NextMove.RETRY:
            return _retried(subject, after)
        case NextMove.EVALUATE:
            return "Its last checkpoint goes to the evaluation pack."
        case NextMove.HOLD:
            return f"Held for a person: {decision.why}"
    return f"Not retried: {decision.why}"


def _retried(subject: Subject, after: AttemptHistory | None) -> str:
    number = subject.attempt.attempt + 1
    if after is None:
        return f"It is retried as attempt {number}, which waits for its placement."
    receipt = attempt_receipt(subject.history, number)
    step = receipt.lineage.resumed_from_step
    where = f"resumed at step {step}" if step is not None else "began again at step 0"
    reason = receipt.outcome.termination_reason
    end = "is in progress" if reason == IN_PROGRESS else f"ended with {reason}"
    return f"It was retried as attempt {number}, which {where} and {end}."


def _hint(subject: Subject) -> str:
    ended = subject.attempt.ended
    return policy_of(ended.reason).hint if ended else ""
