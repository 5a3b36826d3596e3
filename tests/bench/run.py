"""`make bench`: what the orchestration costs, beside bare Ray actors doing the same training, in one go.

About ten minutes on two quiet cores. Nothing is asserted: a figure says what to expect. What was measured is stored
after each part.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench import commands, explain, first_step, kills, takeover
from tests.bench.results import Results, machine, table
from tests.support.stack import running_stack

PARTS = ("help", "explain", "up", "takeover", "first-step", "kills")
OUT = Path(__file__).parents[2] / ".build/bench.json"
Part = Callable[[Results], None]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: all, in this order")
    options.add_argument("--rounds", type=int, default=10, help="submissions of each kind")
    options.add_argument("--kills", type=int, default=20, help="workers killed")
    options.add_argument("--actors", type=int, default=5, help="actors killed")
    options.add_argument("--heads", type=int, default=2, help="times that Ray's head is killed")
    options.add_argument("--takeovers", type=int, default=5, help="active schedulers killed")
    options.add_argument("--ups", type=int, default=3, help="starts of each kind")
    options.add_argument("--helps", type=int, default=20, help="calls of `trackway --help`")
    options.add_argument("--facts", type=int, default=1_000_000, help="facts of the log that is explained from")
    options.add_argument("--explains", type=int, default=20, help="runs explained")
    options.add_argument("--out", type=Path, default=OUT, help="JSON with every value")
    chosen = options.parse_args()
    results = Results(machine=machine())
    with tempfile.TemporaryDirectory(prefix="tw-bench-") as folder:
        for name, part in selected(chosen, Path(folder)):
            measure(name, part, results)
            results.store(chosen.out)
    print(f"\n{table(results)}\n\nEvery value: {chosen.out}")
    return 0


def selected(chosen: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Part]]:
    """The chosen parts in order; those on a stack share one, which is stopped behind the last."""
    if "help" in chosen.parts:
        yield "help", partial(commands.measure_help, count=chosen.helps)
    if "explain" in chosen.parts:
        yield "explain", partial(explain.measure, folder=folder, facts=chosen.facts, count=chosen.explains)
    if "up" in chosen.parts:
        yield "up", partial(commands.measure_up, folder=folder, count=chosen.ups)
    if "takeover" in chosen.parts:
        yield "takeover", partial(takeover.measure, folder=folder / "takeover", count=chosen.takeovers)
    if {"first-step", "kills"}.isdisjoint(chosen.parts):
        return
    for stack in running_stack(folder / "state"):
        data = first_step.register_numbers(stack, folder / "numbers")
        if "first-step" in chosen.parts:
            yield "first-step", partial(first_step.measure, stack=stack, folder=folder, data=data, rounds=chosen.rounds)
        if "kills" in chosen.parts:
            for victim, count in (("worker", chosen.kills), ("actor", chosen.actors), ("head", chosen.heads)):
                part = partial(kills.measure, stack=stack, folder=folder, victim=victim, count=count)
                yield f"kills of a run's {victim}", part


def measure(name: str, part: Part, results: Results) -> None:
    """Run a part and note how long it took."""
    began = time.monotonic()
    part(results)
    results.part_seconds[name] = time.monotonic() - began
    print(f"{name}: {results.part_seconds[name]:.0f} s in all", flush=True)


if __name__ == "__main__":
    sys.exit(main())
