"""Where the observations of an attempt are kept: in its receipt, or in a blob that the receipt names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from trackway_common.codec import decode_observations, encode_observations
from trackway_common.errors import Unavailable
from trackway_common.events import AttemptEnded, Observation, Observations
from trackway_common.object_store import BlobStore

from trackway_trainer_agent.domain import observations as domain
from trackway_trainer_agent.domain.bounding import lean
from trackway_trainer_agent.domain.observation_record import recorded

log = logging.getLogger(__name__)

INLINE_BYTES = 64 * 1024
"""More is a blob: receipts are read by everybody, observations by few."""
STORE_LIMIT_S = 5.0
"""A store that has not taken a blob by then is as good as away."""
MOST_BYTES = 512 * 1024
"""Also without a store a receipt stays below one commit's 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the receipt says about the observations."""

    inline: tuple[Observation, ...] = ()
    digest: str | None = None


async def keep(blobs: BlobStore, world_size: int, seen: Sequence[domain.Observation]) -> Kept:
    """Keep them; a store that is away delays no attempt's end."""
    records = tuple(recorded(one) for one in seen)
    body = encode_observations(Observations(world_size=world_size, seen=records))
    if len(body) <= INLINE_BYTES:
        return Kept(inline=records)
    try:
        return Kept(digest=await put_soon(blobs, body))
    except Unavailable as error:
        log.warning("observations kept without what was printed", extra={"error": str(error)})
        return Kept(inline=_that_fit([recorded(lean(one)) for one in seen]))


async def put_soon(blobs: BlobStore, body: bytes) -> str:
    """Keep a blob and return its digest; raises ``Unavailable`` also when the store takes too long."""
    try:
        async with asyncio.timeout(STORE_LIMIT_S):
            return await asyncio.to_thread(blobs.put, body)
    except TimeoutError as error:
        raise Unavailable(f"the object store took no blob within {STORE_LIMIT_S:g} s") from error


async def fetch(blobs: BlobStore, ended: AttemptEnded) -> Observations | None:
    """What the blob holds that the receipt names; raises ``Unavailable`` while the store is away."""
    if ended.observations_digest is None:
        return None
    return decode_observations(await asyncio.to_thread(blobs.get, ended.observations_digest))


def _that_fit(records: Sequence[Observation]) -> tuple[Observation, ...]:
    fitting: list[Observation] = []
    room = MOST_BYTES
    for record in records:
        room -= len(encode_observations(Observations(seen=(record,))))
        if room < 0:
            break
        fitting.append(record)
    return tuple(fitting)
