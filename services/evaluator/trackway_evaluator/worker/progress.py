"""Progress as JSON lines, for whoever watches the file."""

from __future__ import annotations

import json
import time
from pathlib import Path


class Progress:
    """Appends to one try's progress.jsonl."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, **values: str | int) -> None:
        """One line; whole, or not there."""
        line = json.dumps({"at_ms": time.time_ns() // 1_000_000, **values})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
