"""Evidence for and against, strongest first; what merely followed is collapsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trackway_common.events import Authority, CausalRole, Evidence, Stance
from trackway_common.history.explain.sections import (
    Cascade,
    EvidenceSection,
    Observation,
)
from trackway_common.history.explain.subject import Subject
from trackway_common.history.receipt.outcome_columns import ruling_of
from trackway_common.history.receipt.seconds import KEEPS_ALL
from trackway_common.history.wording import one_line, time_of_ms

_ORDER = (
    Authority.OWN_INTENT,
    Authority.SUBSTRATE,
    Authority.ERROR_FILE,
    Authority.HOST,
    Authority.EXIT_STATUS,
    Authority.LOG_SIGNATURE,
    Authority.NONE,
    Authority.UNSPECIFIED,
)
_FOLLOWED = (CausalRole.CASCADE, CausalRole.TEARDOWN)
_SILENCE = {
    Authority.OWN_INTENT: "no cancel, preemption, drain or deadline of ours",
    Authority.SUBSTRATE: "no word from the cluster",
    Authority.ERROR_FILE: "no error file of a rank",
    Authority.HOST: "no host record (memory kills, full disks, device health)",
}


def evidence_of(subject: Subject) -> EvidenceSection | None:
    """Return the evidence; None while the attempt runs."""
    said, ended = ruling_of(subject.attempt), subject.attempt.ended
    if said is None and ended is None:
        return None
    evidence = said.evidence if said else ended.evidence if ended else ()
    reason = said.reason if said else ended.reason if ended else None
    supporting = [e for e in evidence if e.role is CausalRole.INITIATING]
    followed = [e for e in evidence if e.role in _FOLLOWED]
    others = [e for e in evidence if e.role not in (CausalRole.INITIATING, *_FOLLOWED)]
    against = [e for e in others if e.stance is Stance.CONTRADICTS]
    undecided = [e for e in others if e.stance is not Stance.CONTRADICTS]
    texts = subject.surroundings.texts
    return EvidenceSection(
        supporting=_observations(supporting, texts),
        against=_observations(against, texts),
        undecided=_observations(undecided, texts),
        cascades=_cascades(followed),
        silent=() if reason in KEEPS_ALL else _silent(evidence, supporting),
        notes=tuple(_notes(subject)),
    )


def _notes(subject: Subject) -> Iterator[str]:
    """Attempts with the same root: where it comes back in whatever was changed since, that was not the cause."""
    ended = subject.attempt.ended
    if ended is None or not ended.fingerprint or ended.reason in KEEPS_ALL:
        return
    alike = [a for a in subject.history.attempts if a is not subject.attempt and a.ended]
    alike = [a for a in alike if a.ended and a.ended.fingerprint == ended.fingerprint]
    if alike:
        numbers = ", ".join(str(a.attempt) for a in alike)
        plural = "s" if len(alike) > 1 else ""
        yield f"Attempt{plural} {numbers} of this run ended with the same root ({ended.fingerprint})."


def _observations(evidence: Sequence[Evidence], texts: Mapping[str, str]) -> tuple[Observation, ...]:
    ranked = sorted(evidence, key=lambda e: (_ORDER.index(e.authority), e.observed_at_ms or 0))
    return tuple(_observation(sorted(items, key=_rank), texts) for items in _alike(ranked))


def _observation(items: Sequence[Evidence], texts: Mapping[str, str]) -> Observation:
    first = items[0]
    return Observation(
        source=first.source,
        authority=first.authority,
        role=first.role,
        excerpt=first.excerpt,
        ranks=_ranks(items),
        at=time_of_ms(first.observed_at_ms) if first.observed_at_ms else None,
        blob_digest=first.blob_digest or "",
        text=texts.get(first.blob_digest or "", ""),
    )


def _cascades(followed: Sequence[Evidence]) -> tuple[Cascade, ...]:
    return tuple(
        Cascade(role=items[0].role, count=len(items), ranks=_ranks(items), excerpt=items[0].excerpt)
        for items in _alike(followed)
    )


def _alike(evidence: Sequence[Evidence]) -> list[list[Evidence]]:
    """Group what says the same of several ranks, in the order of first appearance."""
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for item in evidence:
        key = (item.role, item.authority, _shape(item.source), _shape(item.excerpt))
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def _shape(text: str) -> str:
    """Digits are ports, ranks and addresses: what differs between ranks that say the same."""
    return re.sub(r"\d+", "0", one_line(text, 120))


def _rank(item: Evidence) -> int:
    return -1 if item.rank is None else item.rank


def _ranks(items: Sequence[Evidence]) -> tuple[int, ...]:
    return tuple(sorted({item.rank for item in items if item.rank is not None}))


def _silent(evidence: Sequence[Evidence], supporting: Sequence[Evidence]) -> tuple[str, ...]:
    """What would have outranked the evidence that decided, had it been there."""
    best = min((_ORDER.index(e.authority) for e in supporting), default=len(_ORDER))
    heard = {e.authority for e in evidence}
    return tuple(text for kind, text in _SILENCE.items() if _ORDER.index(kind) < best and kind not in heard)
