"""What the corpus tells its programs: which fault, and a folder to meet the harness in. No torch, no SDK."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = json.loads(Path(os.environ["TRACKWAY_CONFIG"]).read_text(encoding="utf-8"))
KIND: str = CONFIG["kind"]
MEETING = Path(CONFIG["meeting"])
RANK = int(os.environ["RANK"])
ATTEMPT = int(os.environ["TRACKWAY_ATTEMPT"])
POLL_S = 0.02
PATIENCE_S = 120.0
"""A harness that is gone must not leave programs behind."""


def ready() -> None:
    """Say that this rank's attempt stands where the harness wants it."""
    (MEETING / f"ready-{ATTEMPT}-{RANK}").touch()


def await_word(word: str) -> None:
    """Wait for the harness."""
    deadline = time.monotonic() + PATIENCE_S
    while not (MEETING / word).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the harness never said {word!r}")
        time.sleep(POLL_S)


def wait_for_the_end() -> None:
    """Live until something ends this process, or the harness says stop."""
    ready()
    await_word("stop")
