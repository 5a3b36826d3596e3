"""What ran, on what data, and where."""

from __future__ import annotations

import shlex

from trackway_common.events import RankEnded
from trackway_common.history.explain.sections import (
    Data,
    Ran,
    Rank,
    Where,
)
from trackway_common.history.explain.subject import Subject
from trackway_common.history.model import AttemptHistory
from trackway_common.history.wording import short_digest


def ran_of(subject: Subject) -> Ran:
    """Which program, configuration, environment and data."""
    spec, placed = subject.spec, subject.attempt.placed
    shape = placed.shape if placed else None
    return Ran(
        entrypoint=shlex.join(spec.entrypoint.argv),
        entrypoint_kind=spec.entrypoint.kind.lower(),
        owner=spec.owner,
        experiment=spec.experiment,
        hypothesis=spec.hypothesis,
        seed=spec.seed,
        deterministic=spec.deterministic,
        config_digest=shape.config_digest if shape else spec.config_digest,
        hyperparameters_json=shape.hyperparameters_json if shape else spec.hyperparameters_json,
        compared_with=subject.previous.attempt if subject.previous else None,
        changes=placed.changes if placed else (),
        code_requested=spec.code.requested,
        code_digest=spec.code.archive_digest,
        git_commit=spec.code.git_commit or "",
        dirty=spec.code.dirty_diff_digest is not None,
        environment_kind=spec.runtime.kind,
        environment_digest=spec.runtime.environment_digest,
        python_version=spec.runtime.python_version,
        environment_notes=tuple(_environment_notes(subject)),
        data=tuple(
            Data(name=d.name, requested=d.requested, digest=d.manifest_digest, weight=d.weight) for d in spec.datasets
        ),
    )


def where_of(subject: Subject) -> Where | None:
    """The placement; None of an attempt that was refused before it had one."""
    attempt, receipt = subject.attempt, subject.receipt
    if attempt.placed is None:
        return None
    shape = attempt.placed.shape
    compute = shape.compute if shape and shape.compute.compute_class else subject.spec.compute
    return Where(
        pool=receipt.placement.pool,
        compute_class=compute.compute_class,
        accelerators=receipt.money.accelerators,
        accelerator_kind=compute.accelerator_kind,
        agent_id=receipt.placement.agent_id,
        takeovers=max(0, attempt.claims - 1),
        cluster_id=receipt.placement.cluster_id,
        ranks=tuple(_rank(attempt, placement.rank) for placement in attempt.placed.ranks),
        blamed=_blamed(attempt),
        excluded_nodes=shape.excluded_nodes if shape else (),
    )


def _environment_notes(subject: Subject) -> list[str]:
    observed = subject.attempt.environments
    if not observed:
        return ["no rank reported its environment"]
    torches = sorted({e.torch_version for e in observed if e.torch_version})
    differing = sorted(e.rank for e in observed if e.differs_from_pinned)
    notes = [f"torch {', '.join(torches)}"] if torches else []
    if differing:
        notes.append(f"differs from the pinned one on rank {', '.join(map(str, differing))}")
    else:
        notes.append("as pinned on every rank that reported")
    before = {e.environment_digest for e in subject.previous.environments} if subject.previous else set()
    now = {e.environment_digest for e in observed}
    if before and before != now:
        was = ", ".join(short_digest(digest) for digest in sorted(before))
        notes.append(f"not the environment of the attempt before ({was})")
    return notes


def _rank(attempt: AttemptHistory, rank: int) -> Rank:
    started = next((r for r in attempt.started.ranks if r.rank == rank), None) if attempt.started else None
    ended = next((r for r in attempt.ended.ranks if r.rank == rank), None) if attempt.ended else None
    return Rank(
        rank=rank,
        node=started.node if started else "",
        device=started.device if started else "",
        pid=started.trainer_pid if started else 0,
        ended=_exit_text(ended) if ended else "",
        last_step=ended.last_step if ended else None,
        peak_memory_bytes=ended.peak_memory_bytes if ended else None,
        blamed=attempt.ended is not None and attempt.ended.blamed_rank == rank,
    )


def _exit_text(ended: RankEnded) -> str:
    if ended.signal:
        return f"killed by {ended.signal}"
    return f"exit code {ended.exit_code}" if ended.exit_code is not None else "no exit status"


def _blamed(attempt: AttemptHistory) -> str:
    ended = attempt.ended
    if ended is None or (ended.blamed_rank is None and not ended.blamed_node):
        return ""
    rank = f"rank {ended.blamed_rank}" if ended.blamed_rank is not None else ""
    node = f"node {ended.blamed_node}" if ended.blamed_node else ""
    return " on ".join(part for part in (rank, node) if part)
