"""What the bench measured, where, and how it is told."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

UP_TARGET = "≤ 25 s"
HELP_TARGET = "≤ 150 ms"
CLOSED_TARGET = "p50 < 1 s, p99 < 5 s"
WARM_TARGET = "ratio ≤ 0.6: its actors are kept"
COLD_TARGET = "ratio ≤ 1.2: placed anew"
EXPLAIN_TARGET = "< 1 s"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and when it was measured."""

    date: str
    commit: str
    system: str
    python: str
    cores: int
    memory_gib: float
    load_before: float
    """Runnable processes, mean of the last minute: on a quiet machine about 0."""


@dataclass(kw_only=True)
class Restarts:
    """Deaths of one kind."""

    closed_s: list[float] = field(default_factory=list)
    """From the death to the attempt's end."""
    resumed_s: list[float] = field(default_factory=list)
    """From the death to the next attempt's first step, less the backoff."""
    cold_start_s: list[float] = field(default_factory=list)
    """From a placement to the first step, of each run's first attempt."""


@dataclass(kw_only=True)
class Results:
    """Every value, in seconds; empty where a part was left out."""

    machine: Machine
    help_s: list[float] = field(default_factory=list)
    up_fresh_s: list[float] = field(default_factory=list)
    up_kept_s: list[float] = field(default_factory=list)
    first_step_s: list[float] = field(default_factory=list)
    bare_first_step_s: list[float] = field(default_factory=list)
    restarts: dict[str, Restarts] = field(default_factory=dict)
    """By what was killed."""
    takeover_s: list[float] = field(default_factory=list)
    explain_s: list[float] = field(default_factory=list)
    export_s: float = 0.0
    export_facts: int = 0
    export_runs: int = 0
    verify_s: float = 0.0
    part_seconds: dict[str, float] = field(default_factory=dict)

    def store(self, path: Path) -> None:
        """Write all of it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def machine() -> Machine:
    """This machine, now."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return Machine(
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        commit=commit.stdout.strip(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        cores=os.cpu_count() or 0,
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        load_before=os.getloadavg()[0],
    )


def table(results: Results) -> str:
    """The dated table in Markdown, with a row for each part that was measured."""
    here = results.machine
    where = f"{here.date}, {here.cores} cores, {here.memory_gib:.0f} GiB, {here.system}, Python {here.python}"
    lines = [f"{where}, at {here.commit}, load {here.load_before:.1f} before", ""]
    lines += ["| what | n | measured | target |", "|---|---|---|---|"]
    return "\n".join([*lines, *_rows(results)])


def _rows(results: Results) -> Iterator[str]:
    for kind, seconds in (("empty", results.up_fresh_s), ("kept", results.up_kept_s)):
        if seconds:
            spread = f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} – {max(seconds):.1f})"
            yield _row(f"`trackway up`, state folder {kind}", len(seconds), spread, UP_TARGET)
    if results.help_s:
        shown = f"median {_milliseconds(results.help_s, 50)}, p95 {_milliseconds(results.help_s, 95)}"
        yield _row("`trackway --help`", len(results.help_s), shown, HELP_TARGET)
    if results.first_step_s:
        yield _row("submit → first step", len(results.first_step_s), _first_step(results), "–")
    for victim, restarts in results.restarts.items():
        yield from _restarts(victim, restarts)
    if results.takeover_s:
        shown = f"median {_milliseconds(results.takeover_s, 50)}, max {max(results.takeover_s) * 1000:.0f} ms"
        yield _row("SIGKILL of the active scheduler → the standby serves", len(results.takeover_s), shown, "< 3 s")
    if results.explain_s:
        log = f"{results.export_facts:,} facts, {results.export_runs:,} runs"
        shown = f"p50 {_milliseconds(results.explain_s, 50)}, max {max(results.explain_s) * 1000:.0f} ms"
        yield _row(f"`trackway explain RUN --log DIR`, {log}", len(results.explain_s), shown, EXPLAIN_TARGET)
        yield _row(f"`trackway log export`, {log}", 1, f"{results.export_s:.0f} s", "–")
        yield _row(f"`trackway log verify`, {log}", 1, f"{results.verify_s:.0f} s", "–")


def _restarts(victim: str, restarts: Restarts) -> Iterator[str]:
    closed, resumed = restarts.closed_s, restarts.resumed_s
    if closed:
        shown = f"p50 {_milliseconds(closed, 50)}, p99 {_milliseconds(closed, 99)}"
        target = "–" if victim == "head" else CLOSED_TARGET
        yield _row(f"SIGKILL of a run's {victim} → attempt closed", len(closed), shown, target)
    if resumed:
        cold_s = statistics.median(restarts.cold_start_s)
        shown = f"median {statistics.median(resumed):.1f} s, cold start {cold_s:.1f} s, ratio"
        shown += (
            f" {statistics.median(resumed) / cold_s:.2f} ({min(resumed) / cold_s:.2f} – {max(resumed) / cold_s:.2f})"
        )
        target = {"worker": WARM_TARGET, "actor": COLD_TARGET}.get(victim, "–")
        yield _row("the same → first resumed step, less backoff", len(resumed), shown, target)


def _row(what: str, count: int, measured: str, target: str) -> str:
    return f"| {what} | {count} | {measured} | {target} |"


def _first_step(results: Results) -> str:
    ours, bare = results.first_step_s, results.bare_first_step_s
    ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
    medians = f"median {statistics.median(ours):.1f} s, bare Ray actors {statistics.median(bare):.1f} s"
    return f"{medians}, ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})"


def _milliseconds(seconds: Sequence[float], percentile: int) -> str:
    """Interpolated between its neighbours; of few values a high percentile is nearly the largest."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [*seconds] * 99
    return f"{cuts[percentile - 1] * 1000:.0f} ms"
