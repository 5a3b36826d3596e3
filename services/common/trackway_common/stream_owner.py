"""The decider shell: fold a fact topic, and append to the scopes that were claimed.

State holds only what was read back from the log as accepted, so there is nothing to undo: a zombie reads
the newer claim before its own record and learns that it was refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from trackway_common.acceptance import Accepted, Claimed, Duplicate, Rejected
from trackway_common.clock import Clock
from trackway_common.codec import commit_headers, encode_commit
from trackway_common.commit import CommandContext, Commit, Term, UnknownFact
from trackway_common.decider import C, Decider, S
from trackway_common.errors import CommandRejected, CorruptLog, Fenced, Unavailable
from trackway_common.event_log import EventLog
from trackway_common.events import Fact, OwnershipClaimed
from trackway_common.fact_reader import FactReader, Judged
from trackway_common.ids import IdSource, root_key
from trackway_common.partitioner import partition_of
from trackway_common.telemetry import current_traceparent

log = logging.getLogger(__name__)

MAX_COMMIT_BYTES = 1 << 20
"""A fact is a decision, not a payload; what is larger belongs in a blob."""
READ_BACK_TIMEOUT_S = 30.0
"""An acknowledged record is readable at once; longer means that the tail lost the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who appends, and where it can be reached."""

    writer_id: str
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed(Generic[S]):
    """What a command did."""

    facts: tuple[Fact, ...]
    state: S
    repeated: bool
    """True when the command had been carried out before; ``facts`` are those of then."""


@dataclass(slots=True)
class _Stream(Generic[S]):
    state: S
    done: dict[str, tuple[Fact, ...]] = field(default_factory=dict)
    """Facts per command id that made them."""
    unknown: int | None = None
    """Number of a fact that this build can't read: nobody here may decide on this stream."""


class StreamOwner(Generic[S, C]):
    """Folds every stream of a topic and executes commands on those it owns."""

    def __init__(
        self,
        *,
        event_log: EventLog,
        topic: str,
        decider: Decider[S, C],
        writer: Writer,
        clock: Clock,
        ids: IdSource,
        on_judged: Callable[[Judged], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self._log = event_log
        self._topic = topic
        self._decider = decider
        self._writer = writer
        self._clock = clock
        self._ids = ids
        self._on_judged = on_judged or (lambda judged: None)
        self._on_lost = on_lost or (lambda scope: None)
        self._reader = FactReader(event_log, topic)
        self._streams: dict[str, _Stream[S]] = {}
        self._held: dict[str, Term] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._awaited: dict[str, asyncio.Future[Judged]] = {}
        self.caught_up = self._reader.caught_up
        """Set once everything that was in the topic at the start is folded."""

    async def run(self) -> None:
        """Fold the topic for ever; belongs in the service's task group."""
        async for batch in self._reader.read():
            for judged in batch:
                self._take(judged)

    def state(self, stream: str) -> S | None:
        """State of a stream as read back; None when it has no facts."""
        known = self._streams.get(stream)
        return None if known is None else known.state

    def states(self) -> Mapping[str, S]:
        """Every stream's state."""
        return {stream: known.state for stream, known in self._streams.items()}

    def holds(self, scope: str) -> bool:
        """Tell whether this writer owns the scope, as far as it has read."""
        return scope in self._held

    def owner_term(self, scope: str) -> Term:
        """Highest term that was accepted for the scope."""
        return self._reader.acceptance.term(scope)

    async def claim(self, scope: str, epoch: int = 0) -> Term:
        """Become the only writer of a scope, and return once everything before the claim is folded.

        Raises:
            Fenced: the scope has a higher epoch, or another writer claimed first.
            Unavailable: the claim was not acknowledged; claim again.
        """
        await self.caught_up.wait()
        seen = self.owner_term(scope)
        if seen.epoch > epoch:
            raise Fenced(f"{scope} is owned under epoch {seen.epoch}; {epoch} is too old")
        term = Term(epoch, seen.claim + 1)
        claim = self._commit(scope, 0, term, (OwnershipClaimed(endpoint=self._writer.endpoint),), _CLAIM_CONTEXT)
        judged = await self._append(claim, await self._partition(scope))
        if not isinstance(judged.verdict, Claimed):
            raise Fenced(f"{scope}: {_why(judged)}")
        return term

    async def execute(self, stream: str, command: C, context: CommandContext) -> Executed[S]:
        """Decide on a command and return once its facts were read back as accepted.

        Raises:
            CommandRejected: the decider refused.
            Fenced: this writer does not own the stream's scope (any more).
            Unavailable: the log did not answer; the scope was claimed anew, so asking again with the same
                command id is safe.
            CorruptLog: the stream holds a fact that this build does not know.
        """
        partition = await self._partition(stream)
        scope = self._reader.acceptance.scope_of(partition, stream)
        async with self._locks[scope]:
            self._check_owned(scope)
            known = self._known(stream)
            if known.unknown is not None:
                raise CorruptLog(
                    f"{stream} holds fact {known.unknown} of a newer schema; upgrade before deciding on it"
                )
            if (earlier := known.done.get(context.command_id)) is not None:
                return Executed(facts=earlier, state=known.state, repeated=True)
            facts = self._decider.decide(known.state, command)
            if not facts:
                return Executed(facts=(), state=known.state, repeated=False)
            return await self._commit_facts(stream, scope, partition, facts, context)

    async def _commit_facts(
        self, stream: str, scope: str, partition: int, facts: tuple[Fact, ...], context: CommandContext
    ) -> Executed[S]:
        first_seq = self._reader.acceptance.head(stream) + 1
        commit = self._commit(stream, first_seq, self._held[scope], facts, context)
        try:
            judged = await self._append(commit, partition)
        except Unavailable:
            await self._claim_again(scope)
            if (landed := self._known(stream).done.get(context.command_id)) is not None:
                return Executed(facts=landed, state=self._known(stream).state, repeated=True)
            raise
        if isinstance(judged.verdict, Rejected):
            self._lose(scope)
            raise Fenced(f"{stream}: {_why(judged)}")
        return Executed(facts=facts, state=self._known(stream).state, repeated=False)

    async def _claim_again(self, scope: str) -> None:
        """Settle an uncertain append: below the new claim it can only be accepted or never."""
        epoch = self._held[scope].epoch
        self._lose(scope)
        await self.claim(scope, epoch)

    def _check_owned(self, scope: str) -> None:
        if scope not in self._held:
            raise Fenced(f"{scope} is not owned by {self._writer.writer_id}")

    async def _append(self, commit: Commit, partition: int) -> Judged:
        value = encode_commit(commit)
        if len(value) > MAX_COMMIT_BYTES:
            raise CommandRejected(f"{commit.stream}: {len(value)} bytes in one commit; put what is large into a blob")
        read_back: asyncio.Future[Judged] = asyncio.get_running_loop().create_future()
        self._awaited[commit.commit_id] = read_back
        key = str(commit.stream).encode() if commit.stream.startswith("partitions/") else root_key(commit.stream)
        try:
            await self._log.append(self._topic, partition, key, value, commit_headers(commit))
            async with asyncio.timeout(READ_BACK_TIMEOUT_S):
                return await read_back
        except TimeoutError as error:
            raise Unavailable(f"{commit.stream}: the commit was acknowledged but not read back yet") from error
        finally:
            self._awaited.pop(commit.commit_id, None)

    def _commit(
        self, stream: str, first_seq: int, term: Term, facts: tuple[Fact, ...], context: CommandContext
    ) -> Commit:
        return Commit(
            commit_id=self._ids(),
            stream=stream,
            first_seq=first_seq,
            term=term,
            writer_id=self._writer.writer_id,
            command_id=context.command_id,
            causation_id=context.causation_id,
            correlation_id=context.correlation_id,
            tenant=context.tenant,
            actor=context.actor,
            occurred_at=self._clock.now(),
            traceparent=context.traceparent or current_traceparent(),
            facts=facts,
        )

    def _take(self, judged: Judged) -> None:
        match judged.verdict:
            case Claimed(scope):
                self._take_claim(scope, judged.commit)
            case Accepted():
                self._apply(judged.commit)
            case Rejected() | Duplicate():
                log.info("commit refused", extra={"stream": judged.commit.stream, "why": _why(judged)})
        awaited = self._awaited.get(judged.commit.commit_id)
        if awaited is not None and not awaited.done():
            awaited.set_result(judged)
        self._on_judged(judged)

    def _take_claim(self, scope: str, commit: Commit) -> None:
        if commit.writer_id == self._writer.writer_id:
            self._held[scope] = commit.term
        else:
            self._lose(scope)

    def _lose(self, scope: str) -> None:
        if self._held.pop(scope, None) is not None:
            self._on_lost(scope)

    def _apply(self, commit: Commit) -> None:
        known = self._known(commit.stream)
        self._streams[commit.stream] = known
        for fact in commit.facts:
            if isinstance(fact, UnknownFact):
                known.unknown = fact.number
            else:
                known.state = self._decider.evolve(known.state, fact)
        if commit.command_id:
            facts = tuple(fact for fact in commit.facts if not isinstance(fact, UnknownFact))
            known.done[commit.command_id] = facts

    def _known(self, stream: str) -> _Stream[S]:
        return self._streams.get(stream) or _Stream(state=self._decider.initial(stream))

    async def _partition(self, stream: str) -> int:
        kind, _, rest = stream.partition("/")
        if kind == "partitions":
            return int(rest)
        return partition_of(root_key(stream), await self._log.partition_count(self._topic))


_CLAIM_CONTEXT = CommandContext(command_id="", actor="")


def _why(judged: Judged) -> str:
    return judged.verdict.reason if isinstance(judged.verdict, Rejected) else type(judged.verdict).__name__
