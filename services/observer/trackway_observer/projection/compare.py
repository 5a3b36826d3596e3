"""Compare two projections of the same log, view by view."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.clickhouse import ClickHouse

REBUILT_VIEWS = (
    "training_runs",
    "training_attempts",
    "checkpoints",
    "evaluations",
    "evaluation_metrics",
    "evaluation_samples",
    "retry_decisions",
    "budget_ledger",
    "queue_waits",
    "events",
    "rejected_events",
    "ownership_claims",
    "dead_letters",
    "metrics",
    "logs",
    "resource_samples",
    "rank_heartbeats",
    "signals",
)
"""Every view that follows from the log alone; `agents` and `projector_lag` say how things are at this moment."""
_OWN_COLUMNS = {"events": " except (projected_at)"}
SAMPLE_ROWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where two projections differ."""

    view: str
    rows: int
    other_rows: int
    only_here: tuple[str, ...]
    """A few rows, as text, that the other lacks."""
    only_there: tuple[str, ...]


async def compare_projections(
    database: ClickHouse, other: str, views: tuple[str, ...] = REBUILT_VIEWS
) -> tuple[Difference, ...]:
    """Return the views whose rows differ; none when both projections say the same.

    Args:
        database: one of them; it must stand still meanwhile.
        other: name of the other database on the same server.
        views: which to compare.
    """
    differences = [await _compare(database, other, view) for view in views]
    return tuple(difference for difference in differences if difference is not None)


async def _compare(database: ClickHouse, other: str, view: str) -> Difference | None:
    here, there = _selection(database.database, view), _selection(other, view)
    (rows, digest), (other_rows, other_digest) = await _digest(database, here), await _digest(database, there)
    if (rows, digest) == (other_rows, other_digest):
        return None
    return Difference(
        view=view,
        rows=rows,
        other_rows=other_rows,
        only_here=await _missing(database, here, there),
        only_there=await _missing(database, there, here),
    )


def _selection(database: str, view: str) -> str:
    return f"select toString(tuple(* {_OWN_COLUMNS.get(view, '')})) as line from `{database}`.{view}"  # noqa: S608 - our own names


async def _digest(database: ClickHouse, selection: str) -> tuple[int, int]:
    [(rows, digest)] = await database.rows(f"select count(), sum(cityHash64(line)) from ({selection})")  # noqa: S608 - as above
    return int(rows), int(digest)


async def _missing(database: ClickHouse, selection: str, other: str) -> tuple[str, ...]:
    query = f"select line from ({selection} except {other}) order by line limit {SAMPLE_ROWS}"  # noqa: S608 - as above
    rows = await database.rows(query)
    return tuple(str(row[0]) for row in rows)
