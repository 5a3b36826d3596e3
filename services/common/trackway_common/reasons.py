"""Every termination reason: who acts on it, what a retry may cost by default, and what to do about it.

Data only. The scheduler decides with it (`trackway_scheduler.domain.budgets`), `explain` prints its hints.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from trackway_common.events import FailureDomain, NextMove
from trackway_common.events import TerminationReason as Reason
from trackway_common.reason_hints import HINTS

UNLIMITED = -1
GENERAL_CEILING = 8
"""Failures of any kind in a row without a newly committed checkpoint."""
MAX_ATTEMPTS = 50
"""Attempts over a run's life, but for those never granted and interruptions after progress."""


class Counting(StrEnum):
    """What a budget counts."""

    NO_PROGRESS = "NP"
    """Ends for this reason since the last newly committed checkpoint."""
    LIFETIME = "LT"
    """Ends for this reason over the run's life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Wait before the next attempt: doubles from the first to the last."""

    first_s: float = 0.0
    last_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonPolicy:
    """Default treatment of one reason."""

    reason: Reason
    domain: FailureDomain
    budget: int = 0
    """Retries with nothing changed; UNLIMITED where the reason is no failure."""
    budget_with_change: int = 0
    """Retries when the next attempt differs in ``must_change``; 0 where no change helps."""
    counting: Counting = Counting.NO_PROGRESS
    under_ceiling: bool = True
    """False for interruptions that the run did not cause: they neither use nor meet the general ceiling, and with
    progress, or an unlimited budget, they are none of the run's `max_attempts`."""
    backoff: Backoff = Backoff()
    must_change: str = ""
    """What the next attempt does differently; empty when nothing must."""
    exhausted: NextMove = NextMove.STOP
    """Move once the budget is spent; at once where it is 0."""

    @property
    def hint(self) -> str:
        """What a person does about it: one or two sentences."""
        return HINTS[self.reason]


def policy_of(reason: Reason) -> ReasonPolicy:
    """Return the default policy of a reason; one that this build doesn't know is treated as UNKNOWN."""
    return POLICIES.get(reason, POLICIES[Reason.UNKNOWN])


_WORKLOAD, _DATA, _INFRA = FailureDomain.WORKLOAD, FailureDomain.DATA, FailureDomain.INFRA
_POLICY, _PLATFORM, _UNKNOWN = FailureDomain.POLICY, FailureDomain.PLATFORM, FailureDomain.UNKNOWN
_PREEMPTED_BACKOFF = Backoff(first_s=10, last_s=120)
_FABRIC_BACKOFF = Backoff(first_s=15, last_s=300)
_HALF_MINUTE = Backoff(first_s=30, last_s=30)
_HALF_TO_FIVE_MINUTES = Backoff(first_s=30, last_s=300)

_TABLE = (
    ReasonPolicy(reason=Reason.COMPLETED, domain=_WORKLOAD, exhausted=NextMove.EVALUATE),
    ReasonPolicy(reason=Reason.EARLY_STOPPED, domain=_POLICY, exhausted=NextMove.EVALUATE),
    ReasonPolicy(reason=Reason.CANCELLED_BY_USER, domain=_POLICY),
    ReasonPolicy(reason=Reason.CANCELLED_BY_ADMIN, domain=_POLICY),
    ReasonPolicy(reason=Reason.DEADLINE_EXCEEDED, domain=_POLICY),
    ReasonPolicy(
        reason=Reason.PREEMPTED_SCHEDULER,
        domain=_INFRA,
        budget=10,
        under_ceiling=False,
        backoff=_PREEMPTED_BACKOFF,
        must_change="resumes from the last committed checkpoint; its age in the queue is kept",
    ),
    ReasonPolicy(
        reason=Reason.PREEMPTED_SPOT,
        domain=_INFRA,
        budget=10,
        under_ceiling=False,
        backoff=_PREEMPTED_BACKOFF,
        must_change="resumes from the last committed checkpoint; its age in the queue is kept",
    ),
    ReasonPolicy(
        reason=Reason.NODE_DRAIN,
        domain=_INFRA,
        budget=10,
        under_ceiling=False,
        backoff=_PREEMPTED_BACKOFF,
        must_change="resumes from the last committed checkpoint; its age in the queue is kept",
    ),
    ReasonPolicy(
        reason=Reason.WALLTIME,
        domain=_POLICY,
        budget=2,
        under_ceiling=False,
        must_change="resumes from the last committed checkpoint",
    ),
    ReasonPolicy(
        reason=Reason.NODE_LOST,
        domain=_INFRA,
        budget=5,
        backoff=Backoff(first_s=10, last_s=300),
        must_change="the lost node is left out",
    ),
    ReasonPolicy(
        reason=Reason.DEVICE_HARDWARE,
        domain=_INFRA,
        budget=3,
        backoff=Backoff(first_s=0, last_s=60),
        must_change="the device or its node is left out",
    ),
    ReasonPolicy(reason=Reason.NETWORK_FABRIC, domain=_INFRA, budget=3, backoff=_FABRIC_BACKOFF),
    ReasonPolicy(reason=Reason.RENDEZVOUS_FAILED, domain=_INFRA, budget=3, backoff=_FABRIC_BACKOFF),
    ReasonPolicy(
        reason=Reason.COLLECTIVE_TIMEOUT,
        domain=_INFRA,
        budget=2,
        backoff=_HALF_MINUTE,
        must_change="stacks are collected and the missing ranks blamed",
    ),
    ReasonPolicy(
        reason=Reason.STALLED,
        domain=_WORKLOAD,
        budget=2,
        backoff=_HALF_MINUTE,
        must_change="stacks are collected and the missing ranks blamed",
    ),
    ReasonPolicy(
        reason=Reason.DEVICE_OOM,
        domain=_WORKLOAD,
        budget_with_change=3,
        must_change="micro-batch halved with accumulation doubled, "
        "else activation checkpointing, more shards or the next class",
    ),
    ReasonPolicy(
        reason=Reason.HOST_OOM,
        domain=_WORKLOAD,
        budget_with_change=2,
        backoff=_HALF_MINUTE,
        must_change="memory raised by half within quota, or fewer loader workers",
    ),
    ReasonPolicy(
        reason=Reason.STORAGE_FULL,
        domain=_INFRA,
        budget_with_change=1,
        must_change="more free space",
        exhausted=NextMove.HOLD,
    ),
    ReasonPolicy(reason=Reason.STORAGE_TRANSIENT, domain=_INFRA, budget=4, backoff=Backoff(first_s=30, last_s=600)),
    ReasonPolicy(
        reason=Reason.CHECKPOINT_CORRUPT,
        domain=_INFRA,
        budget=2,
        counting=Counting.LIFETIME,
        must_change="the checkpoint is quarantined and its parent used",
    ),
    ReasonPolicy(reason=Reason.CHECKPOINT_INCOMPATIBLE, domain=_WORKLOAD),
    ReasonPolicy(reason=Reason.CONFIG_INVALID, domain=_WORKLOAD),
    ReasonPolicy(reason=Reason.ADMISSION_INFEASIBLE, domain=_POLICY),
    ReasonPolicy(reason=Reason.DATA_SCHEMA_DRIFT, domain=_DATA),
    ReasonPolicy(reason=Reason.DATA_CORRUPT, domain=_DATA),
    ReasonPolicy(
        reason=Reason.NUMERIC_DIVERGENCE,
        domain=_WORKLOAD,
        budget=1,
        counting=Counting.LIFETIME,
        must_change="rolls back to the last committed checkpoint",
        exhausted=NextMove.HOLD,
    ),
    ReasonPolicy(reason=Reason.USER_CODE_ERROR, domain=_WORKLOAD),
    ReasonPolicy(
        reason=Reason.PROCESS_CRASH,
        domain=_WORKLOAD,
        budget=2,
        backoff=_HALF_MINUTE,
        must_change="the second time on one node, that node is left out",
    ),
    ReasonPolicy(
        reason=Reason.LAUNCH_FAILED,
        domain=_INFRA,
        budget=3,
        backoff=_HALF_TO_FIVE_MINUTES,
        must_change="the node is left out",
    ),
    ReasonPolicy(
        reason=Reason.CAPACITY_TIMEOUT,
        domain=_INFRA,
        budget=UNLIMITED,
        under_ceiling=False,
        backoff=Backoff(first_s=15, last_s=600),
    ),
    ReasonPolicy(
        reason=Reason.AGENT_LOST,
        domain=_PLATFORM,
        budget=3,
        backoff=Backoff(first_s=10, last_s=10),
        must_change="a new placement",
    ),
    ReasonPolicy(
        reason=Reason.PLATFORM_ERROR,
        domain=_PLATFORM,
        budget=3,
        counting=Counting.LIFETIME,
        backoff=Backoff(first_s=60, last_s=1800),
    ),
    ReasonPolicy(reason=Reason.BUDGET_EXHAUSTED, domain=_POLICY, exhausted=NextMove.HOLD),
    ReasonPolicy(reason=Reason.QUOTA_REVOKED, domain=_POLICY, exhausted=NextMove.HOLD),
    ReasonPolicy(reason=Reason.UNKNOWN_KILL, domain=_UNKNOWN, budget=2, backoff=_HALF_TO_FIVE_MINUTES),
    ReasonPolicy(reason=Reason.UNKNOWN, domain=_UNKNOWN, budget=1, backoff=Backoff(first_s=60, last_s=60)),
)

POLICIES = MappingProxyType({policy.reason: policy for policy in _TABLE})
"""The whole table, one entry per reason."""
