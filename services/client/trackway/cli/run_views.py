"""How runs are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trackway.cli.tables import Column, moment

if TYPE_CHECKING:
    from trackway_common.events import AttemptShape, Change, CheckpointRef, RetryDecided, RunSpec

    from trackway.client.resources import LedgerState, Run

RUN_COLUMNS: tuple[Column[Run], ...] = (
    Column("RUN", lambda run: run.run_id),
    Column("PHASE", lambda run: run.phase),
    Column("PROJECT", lambda run: run.spec.project if run.spec else ""),
    Column("MODEL FAMILY", lambda run: run.spec.model_family if run.spec else ""),
    Column("COMPUTE", lambda run: run.spec.compute.compute_class if run.spec else ""),
    Column("ATTEMPT", lambda run: run.attempt or ""),
    Column("SUBMITTED", lambda run: run.submitted_at),
    Column("REASON", lambda run: run.reason),
)


def run_details(run: Run) -> list[tuple[str, object]]:
    """Everything about a run that a person asks first."""
    details: list[tuple[str, object]] = [
        ("run", run.run_id),
        ("phase", run.phase),
        ("reason", run.reason),
        ("message", run.message),
        ("attempt", run.attempt or ""),
        ("submitted", run.submitted_at),
        ("ended", run.ended_at),
        ("last committed", checkpoint_text(run.last_committed)),
        ("evaluation", run.evaluation_id),
    ]
    if run.spec:
        details += _spec_details(run.spec)
    for decision in run.decisions:
        details.append(("decision", _decision_text(decision)))
        details += [("changed", change_text(change)) for change in decision.changes]
    if run.shape:
        details += _shape_details(run.shape)
    details += [("budget", _ledger_text(ledger)) for ledger in run.ledgers]
    details += [("violation", f"{violation.field}: {violation.description}") for violation in run.violations]
    return details


def checkpoint_text(ref: CheckpointRef | None) -> str:
    """A checkpoint in one phrase."""
    return f"step {ref.step}, s{ref.step}-e{ref.epoch}-{ref.nonce}" if ref else ""


def short_digest(digest: str) -> str:
    """A digest that can be told from others at a glance."""
    return digest[:19]


def _spec_details(spec: RunSpec) -> list[tuple[str, object]]:
    ranks = f"{spec.topology.world_size} ranks, {spec.topology.strategy}, {spec.topology.precision}"
    return [
        ("project", spec.project),
        ("model family", spec.model_family),
        ("owner", spec.owner),
        ("experiment", spec.experiment),
        ("hypothesis", spec.hypothesis),
        ("entry point", " ".join(spec.entrypoint.argv)),
        ("code", _code_text(spec)),
        ("runtime", f"{spec.runtime.kind} {short_digest(spec.runtime.environment_digest)}"),
        ("config", short_digest(spec.config_digest)),
        ("seed", f"{spec.seed}{' (drawn)' if spec.seed_drawn else ''}"),
        *(("dataset", f"{d.name}@{short_digest(d.manifest_digest)} weight {d.weight:g}") for d in spec.datasets),
        ("compute", f"{spec.compute.compute_class} on {spec.compute.pool}"),
        ("topology", ranks),
        ("pack", f"{spec.evaluation_pack.name} {short_digest(spec.evaluation_pack.digest)}".strip()),
    ]


def change_text(change: Change) -> str:
    """What an attempt does otherwise than the one before."""
    return f"{change.field}: {change.before or 'none'} → {change.after or 'none'} ({change.why})"


def _shape_details(shape: AttemptShape) -> list[tuple[str, object]]:
    """What now runs otherwise than the spec says."""
    compute = f"{shape.compute.compute_class}, {shape.compute.memory_bytes_per_rank / 2**30:.3g} GiB a rank"
    now: list[tuple[str, object]] = [
        ("now config", f"{short_digest(shape.config_digest)} {shape.hyperparameters_json}"),
        ("now compute", f"{compute}, {shape.world_size} ranks"),
    ]
    return now + [("excluded node", node) for node in shape.excluded_nodes]


def _ledger_text(ledger: LedgerState) -> str:
    budget = "unlimited" if ledger.budget < 0 else str(ledger.budget)
    return f"{ledger.ledger} {ledger.spent} of {budget} {ledger.counts}"


def _code_text(spec: RunSpec) -> str:
    code = spec.code
    if not code.git_commit:
        return short_digest(code.archive_digest)
    changed = " with changes" if code.dirty_diff_digest else ""
    return f"{short_digest(code.archive_digest)}, git {code.git_commit[:12]}{changed}"


def _decision_text(decision: RetryDecided) -> str:
    budget = "unlimited" if decision.budget < 0 else str(decision.budget)
    spent = f"{decision.spent} of {budget} {decision.ledger}"
    at = moment(decision.decided_at)
    return f"{at} attempt {decision.attempt} {decision.reason}: {decision.move} ({spent}) {decision.why}"
