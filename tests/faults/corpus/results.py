"""Where the corpus keeps what came out."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).parent / "measured_logs"
PAGE = Path(__file__).parents[3] / "docs/failure-corpus.md"


def rows_file(results: Path) -> Path:
    """One JSON object a line, one line a fault."""
    return results / "rows.jsonl"


def log_file(results: Path, name: str) -> Path:
    """A fault's run, as exported."""
    return results / f"{name}.tar.xz"
