"""From any observation to findings."""

from __future__ import annotations

import re
from typing import assert_never

from trackway_common.events import Authority, CausalRole
from trackway_common.events import TerminationReason as Reason

from trackway_trainer_agent.domain.findings import Finding, fingerprint
from trackway_trainer_agent.domain.hang_findings import hang_findings
from trackway_trainer_agent.domain.observations import (
    ClusterLost,
    Hang,
    LaunchProblem,
    LaunchStage,
    NodeLeaving,
    Observation,
    RankExit,
    RankLost,
    RankSilent,
    StopOrdered,
    SubstrateCause,
)
from trackway_trainer_agent.domain.rank_findings import rank_findings
from trackway_trainer_agent.domain.signatures import of_error

_OF_STAGE = {
    LaunchStage.PLACE: Reason.LAUNCH_FAILED,
    LaunchStage.PLAN: Reason.LAUNCH_FAILED,
    LaunchStage.CODE: Reason.LAUNCH_FAILED,
    LaunchStage.INPUTS: Reason.LAUNCH_FAILED,
    LaunchStage.RESUME: Reason.LAUNCH_FAILED,
    LaunchStage.EXECUTE: Reason.CONFIG_INVALID,
}
_OF_DAMAGE = {LaunchStage.INPUTS: Reason.DATA_CORRUPT, LaunchStage.RESUME: Reason.CHECKPOINT_CORRUPT}
_DAMAGE = re.compile(
    r"^(NotFound|CorruptLog): |\bis damaged\b|is not what was committed|digest differs|is the manifest of\b"
)
"""What the store says of bytes that are gone or not the ones that were written; anything else may go well next time."""
_OF_SUBSTRATE = {
    SubstrateCause.NODE_DIED: Reason.NODE_LOST,
    SubstrateCause.PREEMPTED: Reason.PREEMPTED_SPOT,
    SubstrateCause.DRAINED: Reason.NODE_DRAIN,
    SubstrateCause.OUT_OF_MEMORY: Reason.HOST_OOM,
    SubstrateCause.KILLED_BY_US: Reason.UNKNOWN_KILL,
    SubstrateCause.UNEXPLAINED: Reason.UNKNOWN_KILL,
}


def findings_of(seen: Observation) -> tuple[Finding, ...]:
    """What one observation says, in all its parts."""
    match seen:
        case RankExit():
            return rank_findings(seen)
        case RankLost():
            return (_lost(seen),)
        case ClusterLost():
            return (_cluster(seen),)
        case LaunchProblem():
            return (_launch(seen),)
        case StopOrdered():
            return (_stop(seen),)
        case RankSilent():
            return (_silent(seen),)
        case Hang():
            return hang_findings(seen)
        case NodeLeaving():
            return (_leaving(seen),)
        case _ as never:
            assert_never(never)


def _stop(seen: StopOrdered) -> Finding:
    return Finding(
        role=CausalRole.INITIATING,
        authority=Authority.OWN_INTENT,
        source="order to stop",
        excerpt=seen.why,
        at_ms=seen.at_ms,
        reason=seen.reason,
        confidence=1.0,
        cause=f"The ranks were stopped on purpose: {seen.why}.",
        fingerprint=fingerprint(seen.reason.value),
        decisive=True,
    )


def _lost(seen: RankLost) -> Finding:
    # Ours it was only where an order to stop stands beside it, which outranks this.
    killed = seen.cause is SubstrateCause.KILLED_BY_US
    unexplained = killed or seen.cause is SubstrateCause.UNEXPLAINED
    return Finding(
        role=CausalRole.INITIATING,
        # Of an unexplained death Ray knows no more than that the process is gone.
        authority=Authority.EXIT_STATUS if unexplained else Authority.SUBSTRATE,
        source=f"rank {seen.rank} actor, as Ray recorded it",
        excerpt=seen.text,
        at_ms=seen.at_ms,
        reason=_OF_SUBSTRATE[seen.cause],
        confidence=0.4 if unexplained else 0.95,
        cause=f"The actor of rank {seen.rank} on {seen.node} died"
        + (" by a ray.kill that was not the agent's." if killed else "")
        + (" and Ray does not say why." if unexplained and not killed else "")
        + ("" if unexplained else f" ({seen.cause.value.replace('_', ' ')})."),
        fingerprint=fingerprint(_OF_SUBSTRATE[seen.cause].value, seen.cause.value),
        rank=seen.rank,
        node=seen.node,
        decisive=not unexplained,
    )


def _cluster(seen: ClusterLost) -> Finding:
    found = f"cluster {seen.found_id} answers instead" if seen.found_id else f"no head for {seen.silent_s:.0f} s"
    return Finding(
        role=CausalRole.INITIATING,
        authority=Authority.SUBSTRATE,
        source="Ray cluster",
        excerpt=f"expected cluster {seen.expected_id}: {found}",
        at_ms=seen.at_ms,
        reason=Reason.NODE_LOST,
        confidence=0.95,
        cause=f"The Ray cluster that held the placement is gone: {found}.",
        fingerprint=fingerprint("NODE_LOST", "cluster"),
        decisive=True,
    )


def _launch(seen: LaunchProblem) -> Finding:
    who = "The ranks" if seen.rank is None else f"Rank {seen.rank}"
    return Finding(
        role=CausalRole.INITIATING,
        authority=Authority.SUBSTRATE,
        source=f"launch, stage {seen.stage.value}",
        excerpt=seen.message,
        at_ms=seen.at_ms,
        reason=_launch_reason(seen),
        confidence=0.9,
        cause=f"{who} could not be started (stage {seen.stage.value}): {seen.message.partition(chr(10))[0]}",
        fingerprint=fingerprint("launch", seen.stage.value, seen.message.partition("\n")[0]),
        rank=seen.rank,
        node=seen.node,
        decisive=True,
    )


def _launch_reason(seen: LaunchProblem) -> Reason:
    """A store that is away or full says so, at whatever stage it was asked."""
    if seen.reason is not None:
        return seen.reason
    signature = of_error(seen.message)
    if signature is not None:
        return signature.reason
    damaged = seen.stage in _OF_DAMAGE and _DAMAGE.search(seen.message) is not None
    return _OF_DAMAGE[seen.stage] if damaged else _OF_STAGE[seen.stage]


def _leaving(seen: NodeLeaving) -> Finding:
    """An announcement: what fails on that node afterwards comes of it."""
    reason = _OF_SUBSTRATE[seen.cause]
    return Finding(
        role=CausalRole.INITIATING,
        authority=Authority.SUBSTRATE,
        source=f"node {seen.node}, as Ray announced it",
        excerpt=seen.text,
        at_ms=seen.at_ms,
        reason=reason,
        confidence=0.95,
        cause=f"Node {seen.node} of {_whose(seen.ranks)} is being taken away ({seen.cause.value}).",
        fingerprint=fingerprint(reason.value, seen.cause.value),
        rank=min(seen.ranks, default=None),
        node=seen.node,
        announced=True,
    )


def _whose(ranks: tuple[int, ...]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:8]))}" if ranks else "the attempt"


def _silent(seen: RankSilent) -> Finding:
    return Finding(
        role=CausalRole.UNKNOWN,
        authority=Authority.NONE,
        source=f"rank {seen.rank}",
        excerpt="no terminal record before the settle window closed",
        at_ms=seen.at_ms,
        rank=seen.rank,
    )
