"""How an attempt ended, by the word that counts: the scheduler's write-off before the agent's own end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trackway_common.codec import fact_json
from trackway_common.events import Evidence, FailureDomain, TerminationReason
from trackway_common.history.model import AttemptHistory
from trackway_common.history.receipt.seconds import failed_at
from trackway_common.history.wording import moment
from trackway_common.reasons import policy_of

IN_PROGRESS = "IN_PROGRESS"
WRITE_OFF_CONFIDENCE = 0.5
"""The scheduler only knows that the agent and its substrate are silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeColumns:
    """Why it ended; ``IN_PROGRESS`` while it has not."""

    state: str
    termination_reason: str
    domain: str
    confidence: float
    cause: str
    fingerprint: str
    classifier_version: str
    first_termination_reason: str
    """What the receipt said at first; the others are of the newest verdict."""
    first_classifier_version: str
    reclassified_at: datetime | None
    blamed_rank: int | None
    blamed_node: str
    evidence: str
    failed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the scheduler said about an attempt that no agent can speak for."""

    reason: TerminationReason
    domain: FailureDomain
    message: str
    evidence: tuple[Evidence, ...]
    at: datetime


def ruling_of(attempt: AttemptHistory) -> Ruling | None:
    """The scheduler's own word on the attempt, if it had to speak."""
    if fact := attempt.refused:
        return ruling(fact.reason, fact.message, fact.evidence, fact.refused_at)
    if off := attempt.written_off:
        return ruling(off.reason, write_off_message(off.evidence), off.evidence, off.written_off_at)
    return None


def ruling(reason: TerminationReason, message: str, evidence: tuple[Evidence, ...], at: datetime) -> Ruling:
    """A ruling, with the domain that its reason belongs to."""
    return Ruling(reason=reason, domain=policy_of(reason).domain, message=message, evidence=evidence, at=at)


def write_off_message(evidence: Sequence[Evidence]) -> str:
    """One sentence on a write-off."""
    first = evidence[0].excerpt if evidence else ""
    return f"The scheduler wrote the attempt off, because its agent can't speak any more. {first}".strip()


def state_of(attempt: AttemptHistory) -> str:
    """PLACED, STARTING, RUNNING, STOPPING or ENDED; QUEUED before its placement."""
    marks = (
        ("ENDED", attempt.ended or attempt.refused or attempt.written_off),
        ("STOPPING", attempt.stopping),
        ("RUNNING", attempt.running or attempt.started),
        ("STARTING", attempt.starting),
        ("PLACED", attempt.placed),
    )
    return next((state for state, fact in marks if fact is not None), "QUEUED")


def outcome_columns(attempt: AttemptHistory) -> OutcomeColumns:
    """Return how the attempt ended, by the newest verdict."""
    said, again = ruling_of(attempt), attempt.reclassified
    ended = again or attempt.ended
    evidence = said.evidence if said else ended.evidence if ended else ()
    reason = said.reason if said else ended.reason if ended else IN_PROGRESS
    domain = said.domain if said else ended.domain if ended else ""
    return OutcomeColumns(
        state=state_of(attempt),
        termination_reason=reason,
        domain=domain,
        confidence=WRITE_OFF_CONFIDENCE if attempt.written_off else ended.confidence if ended else float(bool(said)),
        cause=said.message if said else ended.cause if ended else "",
        fingerprint=ended.fingerprint if ended else "",
        classifier_version=ended.classifier_version if ended else "",
        first_termination_reason=attempt.ended.reason if attempt.ended else "",
        first_classifier_version=attempt.ended.classifier_version if attempt.ended else "",
        reclassified_at=moment(again.reclassified_at) if again else None,
        blamed_rank=ended.blamed_rank if ended else None,
        blamed_node=(ended.blamed_node or "") if ended else "",
        evidence=fact_json(evidence),
        failed_at=failed_at(evidence),
    )


def ended_at(attempt: AttemptHistory) -> datetime | None:
    """When it ended: by its agent's own account where there is one, late or not."""
    if attempt.ended:
        return moment(attempt.ended.ended_at)
    said = ruling_of(attempt)
    return said.at if said else None
