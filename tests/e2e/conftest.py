"""One stack for all end-to-end tests, and a tiny dataset in it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.runs import DATASET
from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    yield from running_stack(tmp_path_factory.mktemp("stack"))


@pytest.fixture(scope="session")
def numbers(stack: Stack, tmp_path_factory) -> Path:
    """Folder of the registered dataset: lines of four inputs and a target."""
    folder = tmp_path_factory.mktemp("numbers")
    draw = random.Random(3)
    for part in range(3):
        rows = [[draw.uniform(-1, 1) for _ in range(4)] for _ in range(40)]
        lines = [" ".join(f"{x:.6f}" for x in (*row, sum(row))) for row in rows]
        (folder / f"part{part}.txt").write_text("\n".join(lines) + "\n")
    answer = stack.cli("dataset", "snapshot", DATASET, str(folder), "--project", "tests")
    assert answer.code == 0, answer.err
    return folder


@pytest.fixture
def client(stack: Stack, numbers: Path):
    with stack.client() as made:
        yield made
