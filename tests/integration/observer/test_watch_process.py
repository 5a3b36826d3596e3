"""The watch as a process, without a broker: what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_killed_watch_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "TRACKWAY_KAFKA__BOOTSTRAP": "127.0.0.1:9",
        "TRACKWAY_STORE__URL": tmp_path.as_uri(),
    }
    command = [sys.executable, "-m", "trackway_observer.watch"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes) as process:
        said: list[str] = []
        # Faust makes its folders before it connects.
        for line in process.stderr:
            said.append(line)
            if "Unable connect" in line:
                break
        process.kill()
    assert "Unable connect" in said[-1], said
    assert list(tmp_path.iterdir()) == []
