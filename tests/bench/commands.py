"""How long commands take as a whole process: `trackway --help` and `trackway up`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.bench.results import Results
from tests.support.stack import TRACKWAY


def measure_help(results: Results, count: int) -> None:
    """`trackway --help`, after one call that warms the page cache."""
    seconds = [seconds_of("--help") for _ in range(count + 1)]
    results.help_s = seconds[1:]


def measure_up(results: Results, folder: Path, count: int) -> None:
    """`trackway up` in an empty state folder, and again in the same one after `trackway down`."""
    for number in range(count):
        state = ("--state", str(folder / f"up-{number}"))
        for kind in (results.up_fresh_s, results.up_kept_s):
            kind.append(seconds_of("up", *state))
            seconds_of("down", *state)
        print(f"up {number}: fresh {results.up_fresh_s[-1]:.1f} s, kept {results.up_kept_s[-1]:.1f} s", flush=True)


def seconds_of(*arguments: str) -> float:
    """Seconds that a command line took; a command that fails ends the bench."""
    began = time.monotonic()
    done = subprocess.run([str(TRACKWAY), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"trackway {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")
    return time.monotonic() - began
