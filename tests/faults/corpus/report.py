"""docs/failure-corpus.md from rows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.faults.corpus.expected import LABELS, LED_TO_A_CHANGE, NOT_INJECTED
from tests.faults.corpus.label import HELD_OUT_ONE_IN
from tests.faults.corpus.measured import Measured
from tests.faults.corpus.row import Row

HEAD = """# The measured failure corpus

Every failure below really happened, in a real process of a real run on a local stack: `make faults` injects them,
reads the run's log, and writes this page; `make faults-verify` computes it again from the kept logs. An expected
reason is written down (`tests/faults/corpus/expected`) before the classifier is changed to meet it.
"""
READING = """A row is a mechanism; variants of its parameters are the same row. *Right reason*: the attempt's
termination reason is the expected one. *Right next move*: move and budget are those that the reason asks for.
*Consequence as root*: a survivor's error was taken for the cause, or a rank is blamed that only suffered. Held out
are the faults whose sha256(name) is divisible by {n}: nobody looks at them while signatures are written.

*Sent*: what the harness, or the kernel, sent to which process (name and id), of an attempt before too; empty where
nothing was sent. *Ended by*: the wait status of each rank's process, as the attempt's receipt has it. *Lost*
is a rank that ran and whose status nobody could read, because its node or its actor went first.
"""

COLUMNS = ("group", "fault", "what happens", "reason", "next move (budget)", "sent", "ended by")
WITH_THE_NODE = frozenset({"NODE_LOST", "NODE_DRAIN", "PREEMPTED_SPOT"})
"""Reasons that say the node went; of a rank that was lost for another one, only its actor did."""


def page(rows: Sequence[Row], measured: Measured) -> str:
    """The whole page."""
    versions = ", ".join(sorted({row.classifier_version for row in rows if row.classifier_version}))
    cost = f"{len(rows)} faults, {sum(row.seconds for row in rows):.0f} s of runs, on {measured.machine}"
    parts = [
        HEAD,
        f"{measured.date} · classifier {versions} · {cost}\n",
        "## Summary\n",
        _summary(rows),
        READING.format(n=HELD_OUT_ONE_IN),
    ]
    parts += ["## Confusion matrix\n", _confusion(rows), "## What came out wrong\n", _wrong(rows)]
    parts += ["## Every fault\n", _faults(rows), "## Not injected here\n", _not_injected()]
    return "\n".join(parts)


def _summary(rows: Sequence[Row]) -> str:
    kinds = {
        "all": list(rows),
        "seen while signatures were written": [row for row in rows if not row.held_out],
        "held out": [row for row in rows if row.held_out],
    }
    lines = ["| faults | number | right reason | consequence as root | right next move |", "|---|---|---|---|---|"]
    for kind, some in kinds.items():
        cascades = sum(row.cascade_as_root for row in some)
        shares = f"{_share(row.right_reason for row in some)} | {cascades} | {_share(row.right_move for row in some)}"
        lines.append(f"| {kind} | {len(some)} | {shares} |")
    return "\n".join(lines) + "\n"


def _share(flags: object) -> str:
    values = [bool(flag) for flag in flags]  # type: ignore[attr-defined] # an iterable of booleans
    return f"{100 * sum(values) / len(values):.1f} % ({sum(values)})" if values else "–"


def _led() -> str:
    lines = [f"- {name}: {why}." for name, why in LED_TO_A_CHANGE.items()]
    return "\n".join(["Held-out faults that led to a change once measured, and so are seen by now:\n", *lines, ""])


def _confusion(rows: Sequence[Row]) -> str:
    """Long form: most of a 37 × 37 table would be empty."""
    counts = Counter((row.expected_reason, row.reason) for row in rows)
    lines = ["| expected | came out | faults |", "|---|---|---|"]
    for (expected, got), count in sorted(counts.items()):
        mark = got if expected == got else f"**{got}**"
        lines.append(f"| {expected} | {mark} | {count} |")
    return "\n".join(lines) + "\n"


def _wrong(rows: Sequence[Row]) -> str:
    wrong = [row for row in rows if not (row.right_reason and row.right_move) or row.cascade_as_root]
    if not wrong:
        return "Nothing.\n"
    lines = ["| fault | expected | came out | what the receipt says |", "|---|---|---|---|"]
    for row in wrong:
        expected = f"{row.expected_reason} {row.expected_move}"
        blamed = f", blames rank {row.blamed}" if row.cascade_as_root else ""
        lines.append(f"| {row.name} | {expected} | {row.reason} {row.move}{blamed} | {_cell(row.cause)} |")
    return "\n".join(lines) + "\n"


def _faults(rows: Sequence[Row]) -> str:
    by_name = {row.name: row for row in rows}
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for label in LABELS:
        row = by_name.get(label.name)
        name = f"{label.name}{' (held out)' if label.held_out else ''}"
        got = "not run" if row is None else ("" if row.right_reason else f"**{row.reason}**, not ") + label.reason.value
        move = f"{label.move.value} ({label.asked_ledger})"
        cells = (label.group, name, _cell(label.does), got, move, _sent(row), _ended(row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _ended(row: Row | None) -> str:
    if row is None:
        return ""
    ends = (f"rank {rank['rank']} ({rank['pid'] or 'no process'}): {_status(rank, row)}" for rank in row.ranks)
    return ", ".join(ends) or "no rank started"


def _sent(row: Row | None) -> str:
    hurt = row.hurt if row is not None else []
    return ", ".join(f"{one['sent']} to {_cell(one['program'])} ({one['pid']})" for one in hurt)


def _status(rank: dict[str, object], row: Row) -> str:
    if rank["lost"]:
        return f"lost with its {'node' if row.reason in WITH_THE_NODE else 'actor'}"
    if rank["signal"] is not None:
        return str(rank["signal"])
    return "unknown" if rank["exit_code"] is None else f"code {rank['exit_code']}"


def _not_injected() -> str:
    return "\n".join(f"- {what}: {why}" for what, why in NOT_INJECTED.items()) + "\n"


def _cell(text: str) -> str:
    """One line of at most 160 characters that can't break the table."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= 160 else line[:159] + "…"
