"""Keeps the watch's process running beside the projection, which it can't take down with it."""

from __future__ import annotations

import asyncio
import logging
import sys

from trackway_common.clock import Clock

log = logging.getLogger(__name__)

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
STOP_GRACE_S = 5.0
HEALTHY_AFTER_S = 60.0


async def keep_watch_running(clock: Clock) -> None:
    """Start the watch and start it again when it ends, with growing waits; for ever, until cancelled."""
    wait_s = FIRST_WAIT_S
    while True:
        began_s = clock.monotonic()
        code = await _run_once()
        wait_s = FIRST_WAIT_S if clock.monotonic() - began_s > HEALTHY_AFTER_S else min(2 * wait_s, LONGEST_WAIT_S)
        log.warning("watch ended", extra={"exit_code": code, "again_in_s": wait_s})
        await clock.sleep(wait_s)


async def _run_once() -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trackway_observer.watch", stdin=asyncio.subprocess.PIPE
    )
    try:
        return await process.wait()
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_GRACE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
