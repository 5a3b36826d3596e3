"""What the client packs is what the trainer-agent takes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from trackway.client.archive import write_archive
from trackway_common.code_archive import extract


def _packed(folder: Path) -> bytes:
    out = io.BytesIO()
    write_archive(folder, out)
    return out.getvalue()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    long_name = "a_long_name_" * 12 + ".py"
    for path, content in {"run.sh": "#!/bin/sh\n", f"pkg/ä/{long_name}": "x = 1\n", "pkg/__init__.py": ""}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (folder / "run.sh").chmod(0o755)
    (folder / "linked.py").symlink_to(f"pkg/ä/{long_name}")
    return folder


def test_an_extracted_archive_packs_to_the_same_bytes(code: Path, tmp_path: Path) -> None:
    target = tmp_path / "materialised"
    target.mkdir()
    extract(_packed(code), target)
    assert (target / "linked.py").read_text() == "x = 1\n"
    assert _packed(target) == _packed(code)
