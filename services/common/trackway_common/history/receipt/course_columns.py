"""Where an attempt ran, what it resumed from and left behind, and what was decided after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trackway_common.codec import fact_json
from trackway_common.events import CheckpointAbandoned, CheckpointRef, CheckpointStarted, RankPlacement
from trackway_common.history.model import AttemptHistory, CheckpointHistory, EvaluationHistory, RunHistory
from trackway_common.history.receipt.seconds import KEEPS_ALL
from trackway_common.history.wording import checkpoint_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementColumns:
    """Where it ran, and what was found there."""

    epoch: int
    pool: str
    agent_id: str
    cluster_id: str
    nodes: tuple[str, ...]
    placement: str
    ranks: str
    rank_ends: str
    observed_environments: tuple[str, ...]
    """As observed on the ranks; ``environment_digest`` is the pinned one."""
    environment_differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageColumns:
    """Checkpoints and steps."""

    resumed_from: str
    resumed_from_step: int | None
    resumed_from_digest: str
    produced: tuple[str, ...]
    last_committed: str
    last_committed_step: int | None
    last_committed_digest: str
    captures: int
    captures_abandoned: int
    first_step: int
    last_step: int
    steps_lost: int
    last_metrics: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationColumns:
    """Evaluations of the checkpoints that it produced."""

    evaluation_ids: tuple[str, ...]
    evaluator_versions: tuple[str, ...]
    evaluation_verdicts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryColumns:
    """Which retry it was, what it changed, and what was decided after it."""

    retry_number: int
    changes: str
    next_move: str
    next_move_why: str
    ledger: str
    ledger_spent: int
    ledger_budget: int | None
    """-1 is unlimited; None before a decision."""
    backoff_seconds: float


def accelerators_of(ranks: Sequence[RankPlacement]) -> int:
    """Accelerators of a placement; on a CPU class each rank's slot counts as one."""
    return sum(max(1, rank.accelerators) for rank in ranks)


def commits_of(history: RunHistory, epoch: int | None) -> tuple[CheckpointHistory, ...]:
    """Checkpoints that the attempt of this epoch committed, oldest first."""
    return tuple(c for c in history.checkpoints if c.committed.checkpoint.epoch == epoch)


def kept_captures(history: RunHistory, attempt: AttemptHistory) -> tuple[CheckpointStarted, ...]:
    """Captures whose checkpoint was committed, and neither quarantined nor passed over by a later attempt since."""
    good = {checkpoint_name(c.committed.checkpoint) for c in history.checkpoints if c.quarantined_why is None}
    floor = resumed_step_after(history, attempt.attempt)
    return tuple(c for c in attempt.captures if capture_name(c) in good and (floor is None or c.step <= floor))


def resumed_step_after(history: RunHistory, number: int) -> int | None:
    """Lowest step that a later attempt went back to; what came after it was repeated. None: there is none yet."""
    targets = [later.resume.checkpoint for later in history.attempts if later.attempt > number and later.resume]
    return min((target.step if target else 0 for target in targets), default=None)


def capture_name(capture: CheckpointStarted | CheckpointAbandoned) -> str:
    """Name of the checkpoint that the capture was for."""
    return checkpoint_name(CheckpointRef(step=capture.step, epoch=capture.epoch, nonce=capture.nonce))


def placement_columns(attempt: AttemptHistory) -> PlacementColumns:
    """Return where the attempt ran."""
    placed, started, ended = attempt.placed, attempt.started, attempt.ended
    return PlacementColumns(
        epoch=placed.epoch if placed else 0,
        pool=placed.pool if placed else "",
        agent_id=placed.agent_id if placed else "",
        cluster_id=started.cluster_id if started else "",
        nodes=tuple(sorted({rank.node for rank in started.ranks})) if started else (),
        placement=fact_json(placed.ranks if placed else ()),
        ranks=fact_json(started.ranks if started else ()),
        rank_ends=fact_json(ended.ranks if ended else ()),
        observed_environments=tuple(sorted({e.environment_digest for e in attempt.environments})),
        environment_differs=any(e.differs_from_pinned for e in attempt.environments),
    )


def lineage_columns(history: RunHistory, attempt: AttemptHistory, last_step_seen: int) -> LineageColumns:
    """Return the attempt's checkpoints and steps."""
    ended, running = attempt.ended, attempt.running
    resumed = resumed_from(attempt)
    produced = commits_of(history, attempt.placed.epoch if attempt.placed else None)
    last = last_committed(history, attempt)
    last_step = ended.last_step if ended else last_step_seen
    return LineageColumns(
        resumed_from=checkpoint_name(resumed) if resumed else "",
        resumed_from_step=resumed.step if resumed else None,
        resumed_from_digest=resumed.manifest_digest if resumed else "",
        produced=tuple(checkpoint_name(c.committed.checkpoint) for c in produced),
        last_committed=checkpoint_name(last) if last else "",
        last_committed_step=last.step if last else None,
        last_committed_digest=last.manifest_digest if last else "",
        captures=len(attempt.captures),
        captures_abandoned=len(attempt.abandoned),
        first_step=running.first_step if running else ended.first_step if ended else 0,
        last_step=last_step,
        steps_lost=steps_lost(attempt, last, last_step),
        last_metrics=fact_json(ended.last_metrics if ended else ()),
    )


def resumed_from(attempt: AttemptHistory) -> CheckpointRef | None:
    """Checkpoint that the attempt began from; None when it began at step 0."""
    if attempt.resume:
        return attempt.resume.checkpoint
    return attempt.ended.resumed_from if attempt.ended else None


def last_committed(history: RunHistory, attempt: AttemptHistory) -> CheckpointRef | None:
    """Newest commit that stood when the attempt ended, one that landed just after its end included."""
    produced = commits_of(history, attempt.placed.epoch if attempt.placed else None)
    if produced:
        return produced[-1].committed.checkpoint
    if attempt.ended and attempt.ended.last_committed:
        return attempt.ended.last_committed
    return resumed_from(attempt)


def steps_lost(attempt: AttemptHistory, last: CheckpointRef | None, last_step: int) -> int:
    """Steps that no commit kept; 0 while it runs and after a finished training."""
    ended = attempt.ended
    if ended is None or ended.reason in KEEPS_ALL:
        return 0
    return max(0, last_step - (last.step if last else 0))


def evaluation_columns(history: RunHistory, attempt: AttemptHistory) -> EvaluationColumns:
    """Return the evaluations of what the attempt produced."""
    epoch = attempt.placed.epoch if attempt.placed else None
    mine = [e for e in history.evaluations if e.requested and e.requested.checkpoint.epoch == epoch]
    done = [e.completed for e in mine if e.completed]
    return EvaluationColumns(
        evaluation_ids=tuple(e.evaluation_id for e in mine),
        evaluator_versions=tuple(sorted({c.evaluator_version for c in done})),
        evaluation_verdicts=tuple(_verdict(e) for e in mine),
    )


def retry_columns(attempt: AttemptHistory) -> RetryColumns:
    """Return which retry it was and what followed."""
    decision = attempt.decision
    return RetryColumns(
        retry_number=attempt.attempt - 1,
        changes=fact_json(attempt.placed.changes if attempt.placed else ()),
        next_move=decision.move if decision else "",
        next_move_why=decision.why if decision else "",
        ledger=decision.ledger if decision else "",
        ledger_spent=decision.spent if decision else 0,
        ledger_budget=decision.budget if decision else None,
        backoff_seconds=decision.backoff_seconds if decision else 0.0,
    )


def _verdict(evaluation: EvaluationHistory) -> str:
    return evaluation.completed.verdict if evaluation.completed else evaluation.phase
