"""Ending what a test started, without losing what went wrong in it."""

from __future__ import annotations

import asyncio


async def cancel(*tasks: asyncio.Future[None]) -> None:
    """Cancel the tasks and wait for their ends; raises what one had failed with."""
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
