"""The scheduler's own facts: every stream of the runs topic, and commands on them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from trackway_common.commit import CommandContext, UnknownFact
from trackway_common.errors import CommandRejected, TrackwayError
from trackway_common.events import DatasetRegistered, Fact, PoolObserved, Violation
from trackway_common.fact_reader import Judged
from trackway_common.ids import pool_stream, run_stream
from trackway_common.stream_owner import Executed, StreamOwner

from trackway_scheduler.domain.commands import Command, RecordRefusal, RefuseRun, SubmitRun
from trackway_scheduler.domain.datasets import Datasets, Snapshots
from trackway_scheduler.domain.state import ENDED, PackState, PoolState, RunState, State

log = logging.getLogger(__name__)

Owner = StreamOwner[State, Command]


def pack_stream(name: str) -> str:
    """Stream of the versions registered under one pack name."""
    return f"packs/{name}"


class Records:
    """Reads states as they were read back; writes through the active scheduler's claims."""

    def __init__(self, owner: Owner, require_active: Callable[[], None]) -> None:
        self._owner = owner
        self._require_active = require_active
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._datasets: defaultdict[str, dict[str, Snapshots]] = defaultdict(dict)
        self._live: set[str] = set()
        self._traces: dict[str, str] = {}
        self._newest: dict[str, str] = {}

    def take(self, judged: Judged) -> None:
        """Keep the indexes; called with every commit after it was folded."""
        kind, _, name = judged.commit.stream.partition("/")
        if not judged.accepted:
            return
        self._names[kind].add(name)
        if kind == "datasets":
            self._register(judged.commit.facts)
        if kind != "runs":
            return
        self._newest[name] = judged.commit.commit_id
        if judged.commit.traceparent:
            self._traces.setdefault(name, judged.commit.traceparent)
        run = self.run(name)
        if run is not None and run.phase not in ENDED:
            self._live.add(name)
        else:
            self._live.discard(name)

    def _register(self, facts: Sequence[Fact | UnknownFact]) -> None:
        # By the facts, not by the stream: those of the first builds were named datasets/{name}, without the project.
        for fact in facts:
            if isinstance(fact, DatasetRegistered):
                named = self._datasets[fact.project]
                older = (one for one in named.get(fact.name, ()) if one.manifest_digest != fact.manifest_digest)
                named[fact.name] = (*older, fact)

    def run(self, run_id: str) -> RunState | None:
        """A run; None when it has no facts."""
        state = self._owner.state(run_stream(run_id))
        return state if isinstance(state, RunState) else None

    @property
    def run_ids(self) -> set[str]:
        """Every run that was ever submitted, refused ones included."""
        return self._names["runs"]

    def runs(self) -> Iterator[RunState]:
        """All runs, in no order."""
        return (run for run_id in self._names["runs"] if (run := self.run(run_id)) is not None)

    def live_runs(self) -> tuple[RunState, ...]:
        """Runs that have not ended, oldest id first."""
        return tuple(run for run_id in sorted(self._live) if (run := self.run(run_id)) is not None)

    def traceparent(self, run_id: str) -> str:
        """Trace that the run was submitted in."""
        return self._traces.get(run_id, "")

    def newest_commit(self, run_id: str) -> str:
        """Id of the run's newest commit: the cause of what its own state makes due."""
        return self._newest.get(run_id, "")

    @property
    def datasets(self) -> Datasets:
        """All datasets by project and name."""
        return self._datasets

    def pack(self, name: str) -> PackState | None:
        """An evaluation pack by its name."""
        state = self._owner.state(pack_stream(name))
        return state if isinstance(state, PackState) else None

    def pack_names(self) -> tuple[str, ...]:
        """Names of all packs, in order."""
        return tuple(sorted(self._names["packs"]))

    def pool(self, name: str) -> PoolState | None:
        """A pool by its name."""
        state = self._owner.state(pool_stream(name))
        return state if isinstance(state, PoolState) else None

    def pools(self) -> dict[str, PoolObserved]:
        """What every pool was last seen to offer."""
        states = (self.pool(name) for name in sorted(self._names["pools"]))
        return {state.pool: state.observed for state in states if state is not None and state.observed is not None}

    async def perform(self, stream: str, command: Command, context: CommandContext) -> Executed[State]:
        """Execute a command; what a run refuses is kept on its stream.

        Raises:
            CommandRejected: the decider refused.
            Fenced: another scheduler has taken over.
            Unavailable: this one stands by, or the log did not answer; ask again with the same command id.
            CorruptLog: the stream holds what this build does not know.
        """
        self._require_active()
        try:
            return await self._owner.execute(stream, command, context)
        except CommandRejected as refused:
            if self._owner.state(stream) is not None:
                await self._keep(refused, stream, command, context)
            raise

    async def _keep(self, refused: CommandRejected, stream: str, command: Command, context: CommandContext) -> None:
        if not stream.startswith("runs/"):
            return
        record = RecordRefusal(
            command=_asked(command),
            actor=context.actor,
            reason=refused.reason,
            message=refused.message,
            violations=tuple(Violation(field=one.field, description=one.description) for one in refused.violations),
        )
        try:
            await self._owner.execute(stream, record, replace(context, command_id=f"{context.command_id}/refused"))
        except TrackwayError as error:
            # The caller's answer matters more than the note about it.
            log.warning("refusal not recorded", extra={"stream": stream, "reason": refused.reason, "error": str(error)})


def _asked(command: Command) -> str:
    """What the caller asked for: a refusal that is refused again was a submission."""
    return (SubmitRun if isinstance(command, RefuseRun) else type(command)).__name__
