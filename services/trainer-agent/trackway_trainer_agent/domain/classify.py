"""Why an attempt ended: one reason from everything that was seen. Pure and versioned.

Order of evidence: our own intent, the substrate's terminal record, the rank's error file, host facts, exit
status, printed lines. Between ranks the first failure counts. A consequence of somebody else's failure, or of
our own stopping, never becomes the root while anything else can be it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trackway_common.events import Authority, CausalRole, Evidence, FailureDomain
from trackway_common.events import TerminationReason as Reason
from trackway_common.reasons import policy_of

from trackway_trainer_agent.domain.findings import Finding, fingerprint
from trackway_trainer_agent.domain.observations import Observation, RankExit
from trackway_trainer_agent.domain.reading import findings_of

VERSION = "2026-11-5"
"""Raised with every change that can give another reason for the same observations."""
MAX_EVIDENCE = 64
"""Evidence of thousands of ranks repeats itself; the receipt stays far below one commit's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The verdict on one attempt."""

    reason: Reason
    domain: FailureDomain
    confidence: float
    cause: str
    """One sentence for people."""
    fingerprint: str
    evidence: tuple[Evidence, ...]
    """The root first."""
    blamed_rank: int | None = None
    blamed_node: str | None = None
    classifier_version: str = VERSION


def classify(world_size: int, observations: Sequence[Observation]) -> Classification:
    """Return the one reason; the same for every order in which the observations arrived."""
    findings = sorted((f for seen in observations for f in findings_of(seen)), key=_stable)
    root = _root(findings)
    if root is not None and not (root.announced and _all_finished(world_size, observations)):
        return _verdict(root, findings)
    if _all_finished(world_size, observations):
        return _completed(world_size, findings)
    return _unknown(findings)


def _root(findings: Sequence[Finding]) -> Finding | None:
    initiating = [finding for finding in findings if finding.reason and finding.role is CausalRole.INITIATING]
    notices = sorted((finding for finding in initiating if finding.announced), key=lambda notice: notice.at_ms)
    root = _weightiest([finding for finding in initiating if not finding.announced])
    explaining = notices if root is None else [notice for notice in notices if _explains(notice, root)]
    if explaining:
        return explaining[0]
    consequences = [finding for finding in findings if finding.reason and finding.role is CausalRole.CASCADE]
    return root or _first(consequences)


def _weightiest(candidates: Sequence[Finding]) -> Finding | None:
    decisive = [finding for finding in candidates if finding.decisive]
    if decisive:
        return min(decisive, key=lambda finding: (_authority(finding), finding.at_ms))
    return _first(candidates)


def _explains(notice: Finding, failure: Finding) -> bool:
    """A node that goes explains what fails on it from then on, but not what was wrong with the data."""
    assert failure.reason is not None
    came_after = failure.node == notice.node and failure.at_ms >= notice.at_ms
    return came_after and policy_of(failure.reason).domain is not FailureDomain.DATA


def _first(findings: Sequence[Finding]) -> Finding | None:
    """First in time where one clock saw all of them, else by authority: wall clocks of nodes differ."""
    one_clock = len({finding.node for finding in findings}) == 1 and all(f.monotonic_ns for f in findings)
    return min(findings, key=_by_clock if one_clock else _by_authority, default=None)


def _by_clock(finding: Finding) -> tuple[int, int, int]:
    return (finding.monotonic_ns or 0, _authority(finding), finding.rank or 0)


def _by_authority(finding: Finding) -> tuple[int, int, int]:
    return (_authority(finding), finding.at_ms, finding.rank or 0)


def _verdict(root: Finding, findings: Sequence[Finding]) -> Classification:
    assert root.reason is not None
    ordered = [_as_root(root), *_collapsed([_beside(root, finding) for finding in findings if finding is not root])]
    return Classification(
        reason=root.reason,
        domain=policy_of(root.reason).domain,
        confidence=root.confidence,
        cause=root.cause + _also(root, findings),
        fingerprint=root.fingerprint,
        evidence=tuple(finding.evidence(root.reason) for finding in ordered[:MAX_EVIDENCE]),
        blamed_rank=root.rank,
        blamed_node=root.node,
    )


def _as_root(root: Finding) -> Finding:
    return replace(root, role=CausalRole.INITIATING)


def _beside(root: Finding, finding: Finding) -> Finding:
    """Another candidate is the same failure again, or came later and may follow from the root."""
    if finding.role is not CausalRole.INITIATING or finding.fingerprint == root.fingerprint:
        return finding
    return replace(finding, role=CausalRole.TEARDOWN if root.authority is Authority.OWN_INTENT else CausalRole.UNKNOWN)


def _collapsed(findings: Sequence[Finding]) -> list[Finding]:
    """What followed on many ranks alike is told once, with the ranks."""
    alike: dict[tuple[CausalRole, Authority, str], list[Finding]] = {}
    for finding in findings:
        follows = finding.role in {CausalRole.CASCADE, CausalRole.TEARDOWN} and finding.fingerprint
        # Others stand for themselves: their place in the list makes them unlike anything.
        kind = finding.fingerprint if follows else f"#{len(alike)}"
        alike.setdefault((finding.role, finding.authority, kind), []).append(finding)
    return [_told_once(same) for same in alike.values()]


def _told_once(same: Sequence[Finding]) -> Finding:
    others = sorted({finding.rank for finding in same[1:] if finding.rank is not None})
    if not others:
        return same[0]
    return replace(same[0], excerpt=f"{same[0].excerpt}\nThe same on {_ranks(others)}.")


def _also(root: Finding, findings: Sequence[Finding]) -> str:
    """The same failure on other ranks is one failure with a list of ranks."""
    same = {f.rank for f in findings if f.fingerprint == root.fingerprint and f.role is CausalRole.INITIATING}
    others = sorted(rank for rank in same if rank is not None and rank != root.rank)
    if not others:
        return ""
    return f" The same on {_ranks(others)}."


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (" …" if len(ranks) > 8 else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


def _all_finished(world_size: int, observations: Sequence[Observation]) -> bool:
    clean = {seen.rank for seen in observations if isinstance(seen, RankExit) and seen.exit_code == 0}
    return clean == set(range(world_size))


def _completed(world_size: int, findings: Sequence[Finding]) -> Classification:
    ranks = "The rank" if world_size == 1 else f"All {world_size} ranks"
    return Classification(
        reason=Reason.COMPLETED,
        domain=policy_of(Reason.COMPLETED).domain,
        confidence=1.0,
        cause=f"{ranks} finished with exit code 0.",
        fingerprint=fingerprint("COMPLETED"),
        evidence=tuple(finding.evidence(Reason.COMPLETED) for finding in findings[:MAX_EVIDENCE]),
    )


def _unknown(findings: Sequence[Finding]) -> Classification:
    return Classification(
        reason=Reason.UNKNOWN,
        domain=policy_of(Reason.UNKNOWN).domain,
        confidence=0.1,
        cause="The attempt ended and nothing that was collected names a cause.",
        fingerprint=fingerprint("UNKNOWN"),
        evidence=tuple(finding.evidence(Reason.UNKNOWN) for finding in findings[:MAX_EVIDENCE]),
    )


def _authority(finding: Finding) -> int:
    return list(Authority).index(finding.authority)


def _stable(finding: Finding) -> tuple[int, int, int, str]:
    return (_authority(finding), finding.rank if finding.rank is not None else -1, finding.at_ms, finding.source)
