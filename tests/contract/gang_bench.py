"""Clusters under the contract of gangs, and what a test does behind their backs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from trackway_common.errors import Unavailable
from trackway_trainer_agent.adapters.driver_process import DriverProcess
from trackway_trainer_agent.gangs import GangName, Gangs

from tests.unit.trainer_agent.fake_gangs import FakeGangs

LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A cluster under test, and what a test does behind its back."""

    gangs: Gangs
    again: Callable[[], Awaitable[Gangs]]
    """Another client of the same cluster, as after a restart."""
    kill_actor: Callable[[GangName, int, int], None]
    """Name, rank, pid."""
    kill_program: Callable[[GangName, int, int], None]
    store_url: str


def of_fake(fake: FakeGangs, store_url: str) -> Bench:
    async def same() -> Gangs:
        return fake

    return Bench(
        gangs=fake,
        again=same,
        kill_actor=lambda gang, rank, pid: fake.rank(gang, rank).die(),
        kill_program=lambda gang, rank, pid: fake.rank(gang, rank).exit(signal="SIGKILL"),
        store_url=store_url,
    )


def of_ray(driver: DriverProcess, store_url: str) -> Bench:
    async def restarted() -> Gangs:
        os.kill(driver.pid, signal.SIGKILL)
        with pytest.raises(Unavailable):
            await forever(driver.cluster)
        await until(driver.cluster)
        return driver

    return Bench(
        gangs=driver,
        again=restarted,
        kill_actor=lambda gang, rank, pid: os.kill(pid, signal.SIGKILL),
        kill_program=lambda gang, rank, pid: os.kill(pid, signal.SIGKILL),
        store_url=store_url,
    )


async def forever(ask: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            await ask()


async def until(ask: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                await ask()
            except Unavailable:
                await asyncio.sleep(0.05)
            else:
                return
