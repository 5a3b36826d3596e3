"""PoolService: what pools have, offer and use."""

from __future__ import annotations

from typing import Any

from trackway_common.errors import NotFound
from trackway_common.events import PoolObserved, RunPhase
from trackway_proto.v1 import pool_service_pb2 as pb
from trackway_proto.v1.pool_service_pb2_grpc import PoolServiceServicer

from trackway_scheduler.domain.catalogue import NOTHING, capacity_of
from trackway_scheduler.entrypoints.messages import pool_message
from trackway_scheduler.entrypoints.paging import page
from trackway_scheduler.shell.opening import Opening
from trackway_scheduler.shell.queue import FRESH_S, used_by_agent


class PoolServicer(PoolServiceServicer):
    """Answers from what agents told."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def GetPool(  # noqa: N802 - named by the .proto file
        self, request: pb.GetPoolRequest, context: Any
    ) -> pb.Pool:
        name = request.name.removeprefix("pools/")
        pool = self._opening.parts.records.pools().get(name)
        if pool is None:
            raise NotFound(f"no agent of a pool {name!r} was ever heard from")
        return self._message(pool)

    async def ListPools(  # noqa: N802 - named by the .proto file
        self, request: pb.ListPoolsRequest, context: Any
    ) -> pb.ListPoolsResponse:
        pools = self._opening.parts.records.pools().values()
        listed = page(pools, lambda pool: (pool.pool,), size=request.page_size, token=request.page_token)
        return pb.ListPoolsResponse(
            pools=[self._message(pool) for pool in listed.items], next_page_token=listed.next_token
        )

    def _message(self, pool: PoolObserved) -> pb.Pool:
        runs = self._opening.parts.records.live_runs()
        used = used_by_agent(runs).get(pool.agent_id, NOTHING)
        running = [run for run in runs if run.phase is RunPhase.RUNNING and run.placed]
        heard = self._opening.parts.fleet.agent(pool.agent_id) is not None
        return pool_message(
            pool,
            reachable=heard and self._opening.parts.fleet.agent_silence_s(pool.agent_id) <= FRESH_S,
            free=capacity_of(pool).minus(used),
            running=sum(run.placed is not None and run.placed.pool == pool.pool for run in running),
        )
