"""Explains a run or an attempt from what the read model holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from trackway_common.clock import Clock
from trackway_common.codec import decode_fact
from trackway_common.events import PoolObserved, RunPhase, RunSpec
from trackway_common.history.explain import Explanation, Surroundings, explain
from trackway_common.history.explain.whole_texts import whole_texts
from trackway_common.history.fold import fold_run
from trackway_common.history.goodput import Goodput, goodput_of
from trackway_common.history.model import RunHistory
from trackway_common.history.receipt.build import LastSeen
from trackway_common.history.wording import moment, short_id
from trackway_common.ids import pool_stream

from trackway_observer.history.reader import HistoryReader, ReadModel

_AHEAD = """
select count() from training_runs
where phase = 'QUEUED' and compute_class in {classes:Array(String)}
  and (submitted_at, run_id) < ({submitted:DateTime64(6, 'UTC')}, {run:String})
"""
_HOLDERS = """
select run_id, attempt from training_attempts
where state != 'ENDED' and pool = {pool:String} order by placed_at, run_id limit 8
"""
_POOL = """
select hex(payload) from events where stream = {stream:String} order by sequence desc limit 1
"""
_HEARD_AT = "select max(last_seen_at) from agents where pool = {pool:String}"
_LAST_SEEN = """
select attempt, max(at), max(last_step) from rank_heartbeats where run_id = {run:String} group by attempt
"""


class Explaining:
    """Folds the run's facts anew for each explanation; nothing is kept that could be wrong."""

    def __init__(self, database: ReadModel, clock: Clock, blob: Callable[[str], bytes] | None = None) -> None:
        self._blob = blob
        self._database = database
        self._reader = HistoryReader(database)
        self._clock = clock

    async def explain(self, run_id: str, attempt: int | None) -> Explanation:
        """Explain an attempt, or the run by its newest one.

        Raises:
            NotFound: the run has no such attempt.
            CorruptRecord: the read model holds what is no fact.
        """
        history = fold_run(run_id, await self._reader.commits(run_id))
        around = await self._surroundings(history)
        if self._blob is not None:
            texts = await asyncio.to_thread(whole_texts, history, attempt, self._blob)
            around = replace(around, texts=texts)
        return explain(history, attempt, as_of=self._clock.now(), surroundings=around)

    async def goodput(self, run_id: str, attempt: int | None) -> Goodput:
        """Where the time of a run, or of one attempt, went.

        Raises:
            NotFound: the run has no such attempt, or was never queued.
            CorruptRecord: the read model holds what is no fact.
        """
        history = fold_run(run_id, await self._reader.commits(run_id))
        return goodput_of(history, as_of=self._clock.now(), only=attempt)

    async def _surroundings(self, history: RunHistory) -> Surroundings:
        seen = await self._database.rows(_LAST_SEEN, {"run": history.run_id})
        last_seen = {number: LastSeen(at=at, step=step) for number, at, step in seen}
        submitted = history.submitted
        if submitted is None or history.phase is not RunPhase.QUEUED:
            return Surroundings(last_seen=last_seen)
        spec = submitted.spec
        pool = await self._pool(spec.compute.pool)
        return Surroundings(
            ahead=await self._ahead(history.run_id, submitted.submitted_at, _classes(spec, pool)),
            holders=await self._holders(spec.compute.pool),
            pool=pool,
            agent_heard_at=await self._heard_at(spec.compute.pool),
            last_seen=last_seen,
        )

    async def _ahead(self, run_id: str, submitted_at: datetime, classes: Sequence[str]) -> int:
        place = {"classes": classes, "run": run_id, "submitted": submitted_at}
        rows = await self._database.rows(_AHEAD, place)
        return int(rows[0][0])

    async def _pool(self, pool: str) -> PoolObserved | None:
        rows = await self._database.rows(_POOL, {"stream": pool_stream(pool)})
        fact = decode_fact(bytes.fromhex(rows[0][0])) if rows else None
        return fact if isinstance(fact, PoolObserved) else None

    async def _heard_at(self, pool: str) -> datetime | None:
        rows = await self._database.rows(_HEARD_AT, {"pool": pool})
        return moment(rows[0][0])

    async def _holders(self, pool: str) -> tuple[str, ...]:
        rows = await self._database.rows(_HOLDERS, {"pool": pool})
        return tuple(f"{short_id(run_id)}/{attempt}" for run_id, attempt in rows)


def _classes(spec: RunSpec, pool: PoolObserved | None) -> list[str]:
    """Compute classes that share the run's pool, as far as the pool told."""
    offered = {offer.compute_class for offer in pool.offers} if pool else set()
    return sorted({spec.compute.compute_class, *offered})
