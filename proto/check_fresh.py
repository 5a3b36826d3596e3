"""Fail when the committed generated code is not what `make proto` would write now."""

from __future__ import annotations

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FACTS = ROOT.parent / "services/common/trackway_common/events.py"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--ruff", required=True, help="formatter that the fact dataclasses pass through")
    ruff = arguments.parse_args().ruff
    with tempfile.TemporaryDirectory() as folder:
        gen, facts = Path(folder, "gen"), Path(folder, "events.py")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        command = [sys.executable, str(ROOT / "generate.py"), "--gen", str(gen), "--facts", str(facts)]
        subprocess.run(command, check=True, env={**os.environ, "PATH": path}, stderr=subprocess.DEVNULL)
        subprocess.run([ruff, "format", "-q", "--config", str(ROOT.parent / "pyproject.toml"), str(facts)], check=True)
        stale = [
            *_different(gen, ROOT / "gen"),
            *([str(FACTS)] if not filecmp.cmp(facts, FACTS, shallow=False) else []),
        ]
    for name in stale:
        print(f"stale: {name}; run `make proto` and commit what it writes", file=sys.stderr)
    return 1 if stale else 0


def _different(fresh: Path, committed: Path) -> list[str]:
    names = {path.relative_to(root) for root in (fresh, committed) for path in root.rglob("*") if path.is_file()}
    wanted = sorted(name for name in names if "__pycache__" not in name.parts)
    return [str(name) for name in wanted if not _same(fresh / name, committed / name)]


def _same(left: Path, right: Path) -> bool:
    return left.is_file() and right.is_file() and filecmp.cmp(left, right, shallow=False)


if __name__ == "__main__":
    sys.exit(main())
