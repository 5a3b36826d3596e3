"""What the page says of the measurement itself; kept beside the rows."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """When, and on what."""

    date: str
    """Of the newest row."""
    machine: str


def measured_now() -> Measured:
    """Today, on this machine."""
    machine = f"{os.cpu_count()} CPUs, {platform.system()}, Python {platform.python_version()}"
    return Measured(date=date.today().isoformat(), machine=machine)


def read_measured(results: Path) -> Measured | None:
    """As it was kept."""
    file = results / "measured.json"
    return Measured(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


def write_measured(results: Path, measured: Measured) -> None:
    """Keep it."""
    (results / "measured.json").write_text(json.dumps(asdict(measured), indent=1) + "\n", encoding="utf-8")
