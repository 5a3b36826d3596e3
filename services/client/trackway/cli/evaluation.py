"""``trackway evaluation``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trackway.cli.output import show_list, show_one
from trackway.cli.session import Session, common_options
from trackway.cli.tables import Column, size

if TYPE_CHECKING:
    from trackway_common.events import EvaluationCompleted, TaskMetric

    from trackway.client.resources import Evaluation

_COLUMNS: tuple[Column[Evaluation], ...] = (
    Column("EVALUATION", lambda evaluation: evaluation.evaluation_id),
    Column("RUN", lambda evaluation: evaluation.run_id),
    Column("PHASE", lambda evaluation: evaluation.phase),
    Column("VERDICT", lambda evaluation: evaluation.result.verdict if evaluation.result else ""),
    Column("PACK", lambda evaluation: evaluation.pack.name if evaluation.pack else ""),
    Column("STEP", lambda evaluation: evaluation.checkpoint.step if evaluation.checkpoint else ""),
    Column("REQUESTED", lambda evaluation: evaluation.requested_at),
)


@click.group()
def evaluation() -> None:
    """Look at evaluations."""


@evaluation.command("list")
@click.argument("run", required=False)
@common_options
def list_(session: Session, run: str | None) -> None:
    """List a run's evaluations, or those of all runs; newest first."""
    with session.connect() as client:
        show_list(session.output, client.evaluations(run), _COLUMNS, none="There are no evaluations yet.")


@evaluation.command()
@click.argument("name", metavar="EVALUATION")
@common_options
def show(session: Session, name: str) -> None:
    """Show an evaluation: digests of what was run, metrics, gates, and where its raw outputs are.

    `trackway blob DIGEST` prints raw outputs (Parquet).
    """
    with session.connect() as client:
        found = client.evaluation(name)
    show_one(session.output, found, _details(found))


def _details(evaluation: Evaluation) -> list[tuple[str, object]]:
    from trackway.cli.run_views import checkpoint_text, short_digest

    pack = evaluation.pack
    return [
        ("evaluation", evaluation.evaluation_id),
        ("run", evaluation.run_id),
        ("phase", evaluation.phase),
        ("pack", f"{pack.name} {short_digest(pack.digest)}" if pack else ""),
        ("checkpoint", checkpoint_text(evaluation.checkpoint)),
        ("tries", evaluation.evaluation_attempt),
        *(("failure", f"try {f.evaluation_attempt}: {f.failure} {f.message}") for f in evaluation.failures),
        *(_result_details(evaluation.result) if evaluation.result else ()),
    ]


def _result_details(result: EvaluationCompleted) -> Iterator[tuple[str, object]]:
    yield "verdict", result.verdict
    for task in result.tasks:
        skipped = f", {task.errored} errored, {task.skipped} skipped" if task.errored or task.skipped else ""
        yield task.task, f"{task.scored} of {task.planned} scored{skipped}"
        yield "  task digest", task.task_digest
        yield "  decoding digest", task.decoding_digest
        for metric in task.metrics:
            yield f"  {metric.name}", _metric_text(metric)
    for shard in result.shards:
        yield "raw outputs", f"{shard.task} {shard.kind}: {shard.rows} rows, {size(shard.size_bytes)}, {shard.digest}"
    for gate in result.gates:
        blocking = "blocking" if gate.blocking else "advisory"
        compared = f"{gate.value:.6g} {gate.op} {gate.threshold:.6g}"
        yield "gate", f"{gate.verdict} {gate.task} {gate.metric}: {compared} ({blocking})"
    yield "took", f"{result.seconds:.1f} s"


def _metric_text(metric: TaskMetric) -> str:
    error = f" ± {metric.stderr:.3g} ({metric.stderr_method})" if metric.stderr is not None else ""
    where = f" [{metric.slice}]" if metric.slice else ""
    return f"{metric.value:.6g}{error}{where}, n={metric.samples}"
