"""No test, and no whole file, is skipped in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
PASSES = "def test_passes(): pass\n"
SKIPS = {
    "of_a_test": "import pytest\n@pytest.mark.skip(reason='lazy')\ndef test_never(): pass\n",
    "of_a_file": "import pytest\npytest.skip('lazy', allow_module_level=True)\n",
    "of_an_import": "import pytest\npytest.importorskip('trackway_of_nobody')\n",
}


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), "-p", "tests.conftest"]
    return subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", *options, str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("options", [("-n0",), ("-n1",)], ids=["in one process", "in a worker"])
def test_a_skip_that_is_not_listed_fails_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_good.py").write_text(PASSES)
    assert run(tmp_path, *options).returncode == pytest.ExitCode.OK
    for name, text in SKIPS.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    done = run(tmp_path, *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    for name in SKIPS:
        assert done.stdout.count(f"SKIPPED WITHOUT A LISTED REASON: test_{name}.py") == 1, done.stdout
