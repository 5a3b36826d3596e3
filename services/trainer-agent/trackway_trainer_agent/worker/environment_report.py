"""What an interpreter holds, with a digest that is equal on two nodes with the same distributions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trackway_common.canonical import digest
from trackway_common.errors import Unavailable

PROBE = Path(__file__).with_name("environment_probe.py")
PROBE_LIMIT_S = 60.0
"""Reading the metadata of a few hundred distributions from a cold network disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An interpreter's distributions and what they run on."""

    python_version: str
    torch_version: str
    host: str
    digest: str
    """Over the Python version and every distribution with its version; not over host or devices."""
    report_json: str


def observe_environment(python: str, environment: Mapping[str, str] | None = None) -> Environment:
    """Ask an interpreter what it holds; blocks for about 0.2 s.

    Raises:
        Unavailable: the interpreter does not run, or not in time.
    """
    try:
        probed = subprocess.run(
            [python, "-P", str(PROBE)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_LIMIT_S,
            check=True,
            cwd=os.sep,
        )
        report = json.loads(probed.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Unavailable(f"{python} did not report its environment: {error}") from error
    return Environment(
        python_version=report["python_version"],
        torch_version=report["torch_version"],
        host=report["host"],
        digest=digest({"python_version": report["python_version"], "distributions": report["distributions"]}),
        report_json=probed.stdout.decode(),
    )
