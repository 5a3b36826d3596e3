"""Sections about time, place and money."""

from __future__ import annotations

from datetime import datetime

from trackway_common.history.explain.blocks import Block, Pairs, Table
from trackway_common.history.explain.sections import (
    AttemptLine,
    Cost,
    Rank,
    TimelineRow,
    Where,
)
from trackway_common.history.wording import amount_text, bytes_text, clock_text, count_text, number_text, seconds_text

BAR_WIDTH = 12


def attempts_table(attempts: tuple[AttemptLine, ...]) -> Table:
    """All attempts of the run; the one explained carries a mark."""
    return Table(
        header=("", "attempt", "reason", "from", "to step", "lost", "accelerator-s", "then"),
        rows=tuple(_attempt(line) for line in attempts),
        right=frozenset({"attempt", "from", "to step", "lost", "accelerator-s"}),
    )


def timeline_table(timeline: tuple[TimelineRow, ...]) -> Table:
    """Marks, and what the time between them was spent on."""
    longest = max((row.gap_seconds for row in timeline), default=0.0)
    return Table(
        header=("at", "after", "", "spent on", "mark"),
        rows=tuple(_timeline_row(row, timeline[0].at, longest) for row in timeline),
        right=frozenset({"after"}),
    )


def where_blocks(where: Where) -> tuple[Block, ...]:
    """The placement, rank by rank."""
    shape = f"{where.compute_class}, {where.accelerators} x {where.accelerator_kind or 'slot'}"
    cluster = f", cluster {where.cluster_id[:12]}" if where.cluster_id else ""
    again = f" (took it over again {count_text(where.takeovers, 'time')})" if where.takeovers else ""
    items = [("pool", f"{where.pool} ({shape}), agent {where.agent_id}{again}{cluster}")]
    items += [("blamed", where.blamed)] if where.blamed else []
    items += [("kept off", ", ".join(where.excluded_nodes))] if where.excluded_nodes else []
    table = Table(
        header=("", "rank", "node", "device", "pid", "ended", "last step", "peak memory"),
        rows=tuple(_rank(rank) for rank in where.ranks),
        right=frozenset({"rank", "pid", "last step", "peak memory"}),
    )
    return Pairs(items=tuple(items)), table


def cost_pairs(cost: Cost) -> Pairs:
    """What it took, and where the time went."""
    price = f"{number_text(cost.price)} {cost.currency} per accelerator and hour since {cost.price_since}"
    paid = f" = {amount_text(cost.amount)} {cost.currency} ({price})" if cost.currency else ""
    taken = f"{cost.gpu_seconds:,.1f} accelerator-seconds on {cost.accelerators} x {cost.accelerator_kind or 'slot'}"
    items = [("taken", taken + paid)]
    if cost.wall_seconds > 0:
        items.append(("of which", _split(cost)))
    items.append(("before it", f"{seconds_text(cost.queue_seconds)} in the queue, not paid"))
    return Pairs(items=tuple(items))


def _split(cost: Cost) -> str:
    wall_s = cost.wall_seconds
    parts = (f"{part.name} {seconds_text(part.seconds)} ({part.seconds / wall_s:.0%})" for part in cost.spent)
    return f"{seconds_text(wall_s)} held: {' · '.join(parts)}"


def _attempt(line: AttemptLine) -> tuple[str, ...]:
    return (
        "▸" if line.explained else "",
        str(line.attempt),
        line.reason,
        "0" if line.resumed_from_step is None else str(line.resumed_from_step),
        str(line.last_step),
        str(line.steps_lost) if line.steps_lost else "",
        f"{line.gpu_seconds:,.1f}",
        line.next_move.lower(),
    )


def _timeline_row(row: TimelineRow, begin: datetime, longest: float) -> tuple[str, ...]:
    share = row.gap_seconds / longest if longest > 0 else 0.0
    bar = "▇" * round(share * BAR_WIDTH) if row.gap_seconds > 0 else ""
    after = f"+{seconds_text(row.gap_seconds)}" if row.gap_seconds >= 0.0005 else ""
    days = (row.at.date() - begin.date()).days
    at = f"+{days}d {clock_text(row.at)}" if days else clock_text(row.at)
    return at, after, bar, row.gap, row.text


def _rank(rank: Rank) -> tuple[str, ...]:
    return (
        "▸" if rank.blamed else "",
        str(rank.rank),
        rank.node,
        rank.device,
        str(rank.pid) if rank.pid else "",
        rank.ended,
        "" if rank.last_step is None else str(rank.last_step),
        bytes_text(rank.peak_memory_bytes) if rank.peak_memory_bytes else "",
    )
