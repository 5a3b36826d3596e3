"""What the scheduler's shell tests stand on."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.stage import Stage, World


@pytest.fixture
async def stage():
    world = World()
    async with world.running(), Stage(world).up() as staged:
        yield staged
