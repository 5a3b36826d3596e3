"""Judges an attempt again from its receipt alone. Pure."""

from __future__ import annotations

from datetime import datetime

from trackway_common.errors import CommandRejected
from trackway_common.events import AttemptEnded, AttemptReclassified, Observations

from trackway_trainer_agent.domain.classify import Classification, classify
from trackway_trainer_agent.domain.observation_record import observed
from trackway_trainer_agent.domain.observations import Observation


def reclassify(ended: AttemptEnded, stored: Observations | None = None) -> Classification:
    """The verdict of this build's classifier.

    Args:
        ended: the receipt.
        stored: content of the blob ``ended.observations_digest``, where the receipt names one.

    Raises:
        CommandRejected: the receipt holds no observations, or some of a kind that this build doesn't know.
    """
    kept = stored.seen if stored is not None else ended.observations
    if not ended.world_size or (not kept and ended.observations_digest is not None):
        raise CommandRejected(
            f"the receipt of attempt {ended.attempt} holds no observations to judge again", reason="NO_OBSERVATIONS"
        )
    return classify(ended.world_size, [_known(observed(one), ended) for one in kept])


def newer(version: str, than: str) -> bool:
    """Tell whether a classifier's version comes after another: ``year-month-number``."""
    return _order(version) > _order(than)


def reclassified(ended: AttemptEnded, verdict: Classification, *, actor: str, at: datetime) -> AttemptReclassified:
    """The fact that records a verdict."""
    return AttemptReclassified(
        run_id=ended.run_id,
        attempt=ended.attempt,
        reason=verdict.reason,
        domain=verdict.domain,
        confidence=verdict.confidence,
        cause=verdict.cause,
        fingerprint=verdict.fingerprint,
        classifier_version=verdict.classifier_version,
        blamed_rank=verdict.blamed_rank,
        blamed_node=verdict.blamed_node,
        evidence=verdict.evidence,
        actor=actor,
        reclassified_at=at,
    )


def _known(seen: Observation | None, ended: AttemptEnded) -> Observation:
    if seen is None:
        raise CommandRejected(
            f"attempt {ended.attempt} was observed by a newer build; judge it with that one", reason="NEWER_SCHEMA"
        )
    return seen


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-") if part.isdigit())
