"""An export that is killed leaves nothing under its name, and the next one is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from trackway.log_export import ExportOptions, export_log
from trackway_common.errors import CommandRejected
from trackway_common.log_copy.verify import verify

from tests.bench.explain import RepeatedStory, no_blob
from tests.support.stack import wait_until

ROOT = Path(__file__).parents[2]
EXPORT = """
import sys
from pathlib import Path
from trackway.log_export import ExportOptions, export_log
from tests.bench.explain import RepeatedStory, no_blob
export_log(lambda: RepeatedStory(400_000), Path(sys.argv[1]), ExportOptions(), blob=no_blob)
"""


def test_a_killed_export_leaves_no_copy_and_the_next_one_is_whole(tmp_path: Path) -> None:
    folder, partial = tmp_path / "log", tmp_path / ".log.partial"
    exporting = subprocess.Popen([sys.executable, "-c", EXPORT, str(folder)], cwd=ROOT)
    try:
        wait_until(lambda: any(s.stat().st_size for s in partial.glob("*/*.seg")), 60, what="the first records")
        with pytest.raises(CommandRejected, match="another export"):
            export_log(lambda: RepeatedStory(40), folder, ExportOptions(), blob=no_blob)
    finally:
        exporting.kill()
        exporting.wait()
    assert partial.is_dir()
    assert not folder.exists()
    export_log(lambda: RepeatedStory(400), folder, ExportOptions(), blob=no_blob)
    assert verify(folder).problems == ()
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
