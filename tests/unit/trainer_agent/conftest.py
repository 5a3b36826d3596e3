"""The world of the shell's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.trainer_agent.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A cluster whose programs run until the test ends them."""
    made = World(tmp_path / "spool")
    made.gangs.program = lambda rank: rank.run()
    return made
