"""What the read model says about runs and attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trackway_common.commit import Commit
from trackway_common.errors import CommandRejected, NotFound

from trackway_observer.history.commits import (
    CLAIMS_OF_RUN,
    EVENTS_OF_RUN,
    claims_parameters,
    commits_of,
)

Record = Mapping[str, Any]
"""One row of ``training_attempts`` by column, and its ``place`` in lists."""
_PLACE = "toUnixTimestamp64Micro(ifNull(coalesce(queued_at, placed_at, ended_at), toDateTime64(0, 6, 'UTC')))"
"""When an attempt began to wait: it never changes, so pages neither repeat nor miss one."""


class ReadModel(Protocol):
    """The database, for reading. Every method raises Unavailable while it is away."""

    async def rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        """Return all rows of a query; times are in UTC."""
        ...

    async def records(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return all rows by column name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page of attempts ends: the next one goes on behind it."""

    queued_us: int
    run_id: str
    attempt: int


class HistoryReader:
    """Reads; keeps nothing."""

    def __init__(self, database: ReadModel) -> None:
        self._database = database

    async def run_id(self, beginning: str, project: str = "") -> str:
        """Full id of the run that this is, or is the beginning of.

        Raises:
            NotFound: there is none, or it belongs to another project.
            CommandRejected: there are several.
        """
        rows = await self._database.rows(
            "select distinct run_id from events where startsWith(run_id, {run:String}) order by run_id limit 3",
            {"run": beginning},
        )
        found = [str(row[0]) for row in rows]
        if beginning not in found and len(found) > 1:
            raise CommandRejected(f"several runs begin with {beginning!r}; write more of the id", reason="AMBIGUOUS")
        if not found or not beginning:
            raise NotFound(f"no run {beginning!r} is known; `trackway train list` shows them")
        await self._refuse_other_project(found[0], project)
        return found[0]

    async def attempt(self, run_id: str, attempt: int) -> Record:
        """One attempt's receipt.

        Raises:
            NotFound: the run has no such attempt.
        """
        found = await self._attempts(
            "run_id = {run:String} and attempt = {attempt:UInt32}", {"run": run_id, "attempt": attempt}, 1
        )
        if not found:
            raise NotFound(await self._why_no_attempt(run_id, attempt))
        return found[0]

    async def attempts(self, *, run_id: str, project: str, after: Place | None, limit: int) -> Sequence[Record]:
        """Attempts, newest first.

        Args:
            run_id: of one run only; empty for all.
            project: of one project only; empty for all.
            after: go on behind this one.
            limit: at most so many.
        """
        conditions = ["1"]
        if run_id:
            conditions.append("run_id = {run:String}")
        if project:
            conditions.append("project = {project:String}")
        if after:
            conditions.append("(place, run_id, attempt) < ({us:Int64}, {after:String}, {attempt:UInt32})")
        parameters: dict[str, Any] = {"run": run_id, "project": project}
        if after:
            parameters |= {"us": after.queued_us, "after": after.run_id, "attempt": after.attempt}
        return await self._attempts(" and ".join(conditions), parameters, limit)

    async def newest_attempt(self, run_id: str) -> int:
        """Number of the run's newest attempt; 0 before the first placement."""
        query = "select max(attempt) from training_attempts where run_id = {run:String}"
        rows = await self._database.rows(query, {"run": run_id})
        return int(rows[0][0])

    async def commits(self, run_id: str) -> tuple[Commit, ...]:
        """Everything that was accepted about a run, in order within each stream."""
        claims = await self._database.rows(CLAIMS_OF_RUN, claims_parameters(run_id))
        events = await self._database.rows(EVENTS_OF_RUN, {"run": run_id})
        return commits_of(events, claims)

    async def checkpoint_slots(self, run_ids: Iterable[str]) -> Mapping[tuple[str, str], int]:
        """Slot of every committed checkpoint, by run and name."""
        rows = await self._database.rows(
            "select run_id, checkpoint, slot from checkpoints where slot > 0 and run_id in {runs:Array(String)}",
            {"runs": sorted(set(run_ids))},
        )
        return {(run_id, checkpoint): slot for run_id, checkpoint, slot in rows}

    async def _attempts(self, condition: str, parameters: Mapping[str, Any], limit: int) -> Sequence[Record]:
        query = f"""
            select *, {_PLACE} as place from training_attempts where {condition}
            order by place desc, run_id desc, attempt desc limit {{limit:UInt32}}
        """  # noqa: S608 - built from this module's own text; values are parameters
        return await self._database.records(query, {**parameters, "limit": limit})

    async def _refuse_other_project(self, run_id: str, project: str) -> None:
        if not project:
            return
        query = "select project from training_runs where run_id = {run:String}"
        rows = await self._database.rows(query, {"run": run_id})
        if [row[0] for row in rows] != [project]:
            raise NotFound(f"project {project} has no run {run_id}")

    async def _why_no_attempt(self, run_id: str, attempt: int) -> str:
        newest = await self.newest_attempt(run_id)
        has = f"its newest is {newest}" if newest else "it waits for its first"
        return f"run {run_id} has no attempt {attempt}; {has}"
