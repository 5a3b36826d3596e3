"""The decider shell on every log: expected sequence, fencing, read-back, uncertain appends, replay."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from trackway_common.clock import SystemClock
from trackway_common.codec import encode_commit
from trackway_common.commit import CommandContext, Commit, Term, UnknownFact
from trackway_common.decider import Decider
from trackway_common.errors import CommandRejected, CorruptLog, Fenced, Unavailable
from trackway_common.event_log import EventLog, UncertainAppend
from trackway_common.events import AttemptStopping
from trackway_common.ids import attempt_stream, root_key, uuid7
from trackway_common.partitioner import partition_of
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import ATTEMPTS, FACT_PARTITIONS

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Tally:
    """State of the tests' aggregate: the words that were said, in order."""

    words: tuple[str, ...] = ()


def decide(state: Tally, command: str) -> tuple:
    if command == "forbidden":
        raise CommandRejected("no")
    if command in state.words:
        return ()
    return tuple(AttemptStopping(why=word, stopping_at=NOW) for word in command.split("+"))


def evolve(state: Tally, fact) -> Tally:
    return replace(state, words=(*state.words, fact.why))


DECIDER = Decider(initial=lambda stream: Tally(), decide=decide, evolve=evolve)


TEMPLATE = Commit(
    commit_id="",
    stream="",
    first_seq=0,
    term=Term(0, 0),
    writer_id="newer build",
    command_id="",
    causation_id="",
    correlation_id="",
    tenant="",
    actor="",
    occurred_at=NOW,
    traceparent="",
    facts=(UnknownFact(number=999, raw=bytes([0xBA, 0x3E, 0x00])),),
)


class FlakyLog:
    """A log whose next appends lose their acknowledgement, written or not."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.faults: list[str] = []
        self.held: list[tuple] = []

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def append(self, *record) -> int:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "hold":
            self.held.append(record)
            raise UncertainAppend("held back")
        offset = await self._log.append(*record) if fault != "lost" else -1
        if fault:
            raise UncertainAppend(fault)
        return offset

    async def release(self) -> None:
        for record in self.held:
            await self._log.append(*record)


def context(command_id: str | None = None) -> CommandContext:
    return CommandContext(command_id=command_id or uuid7(), actor="test")


@asynccontextmanager
async def owner(log: EventLog, name: str = "w", seen: list | None = None):
    made = StreamOwner(
        event_log=log,
        topic=ATTEMPTS,
        decider=DECIDER,
        writer=Writer(writer_id=f"{name}-{uuid7()}", endpoint=name),
        clock=SystemClock(),
        ids=uuid7,
        on_judged=seen.append if seen is not None else None,
    )
    task = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(30):
            await made.caught_up.wait()
            yield made
    finally:
        task.cancel()


@pytest.fixture
def stream() -> str:
    return attempt_stream(uuid7(), 1)


async def folded(log: EventLog, stream: str) -> tuple[str, ...]:
    """What a fresh reader makes of a stream."""
    async with owner(log, "reader") as reader:
        state = reader.state(stream)
        return state.words if state else ()


async def test_an_answer_means_that_a_fresh_reader_sees_it(log, stream):
    async with owner(log) as writer:
        await writer.claim(stream, epoch=1)
        executed = await writer.execute(stream, "a+b", context())
        assert executed.state.words == ("a", "b")
    assert await folded(log, stream) == ("a", "b")


async def test_nothing_is_appended_when_nothing_is_decided(log, stream):
    async with owner(log) as writer:
        await writer.claim(stream)
        await writer.execute(stream, "a", context())
        assert (await writer.execute(stream, "a", context())).facts == ()
        with pytest.raises(CommandRejected):
            await writer.execute(stream, "forbidden", context())
    assert await folded(log, stream) == ("a",)


async def test_the_same_command_again_has_no_effect(log, stream):
    async with owner(log) as writer:
        await writer.claim(stream)
        first = await writer.execute(stream, "a", context("cmd"))
        again = await writer.execute(stream, "b", context("cmd"))
        assert again.repeated
        assert again.facts == first.facts
    async with owner(log) as successor:
        await successor.claim(stream)
        assert (await successor.execute(stream, "c", context("cmd"))).repeated
    assert await folded(log, stream) == ("a",)


async def test_a_writer_without_a_claim_is_fenced(log, stream):
    async with owner(log) as writer:
        with pytest.raises(Fenced):
            await writer.execute(stream, "a", context())
    assert await folded(log, stream) == ()


async def test_the_older_of_two_writers_is_fenced(log, stream):
    async with owner(log, "old") as old, owner(log, "new") as new:
        await old.claim(stream, epoch=1)
        await old.execute(stream, "a", context())
        await new.claim(stream, epoch=1)
        await new.execute(stream, "b", context())
        with pytest.raises(Fenced):
            await old.execute(stream, "zombie", context())
    assert await folded(log, stream) == ("a", "b")


async def test_a_stopped_writer_that_wakes_up_is_refused_by_every_reader(log, stream):
    """The zombie appends before it has read the newer claim: the record lands, and never counts."""
    flaky, seen = FlakyLog(log), []
    async with owner(flaky, "zombie") as zombie, owner(log, "new", seen) as new:
        await zombie.claim(stream, epoch=1)
        flaky.faults = ["hold", "lost"]
        with pytest.raises(Unavailable):
            await zombie.execute(stream, "late", context())
        await new.claim(stream, epoch=2)
        await flaky.release()
        await new.execute(stream, "b", context())
        assert [j.verdict.reason for j in seen if not j.accepted and hasattr(j.verdict, "reason")]
    assert await folded(log, stream) == ("b",)


async def test_a_lower_epoch_cannot_claim(log, stream):
    async with owner(log, "new") as new, owner(log, "old") as old:
        await new.claim(stream, epoch=3)
        await new.execute(stream, "a", context())
    async with owner(log, "old") as old:
        with pytest.raises(Fenced, match="epoch 3"):
            await old.claim(stream, epoch=2)


async def test_an_uncertain_append_that_landed_counts_once(log, stream):
    flaky = FlakyLog(log)
    async with owner(flaky) as writer:
        await writer.claim(stream)
        flaky.faults = ["landed"]
        executed = await writer.execute(stream, "a", context("cmd"))
        assert executed.repeated
        assert executed.state.words == ("a",)
        await writer.execute(stream, "b", context())
    assert await folded(log, stream) == ("a", "b")


async def test_an_uncertain_append_that_was_lost_can_be_asked_again(log, stream):
    flaky = FlakyLog(log)
    async with owner(flaky) as writer:
        await writer.claim(stream)
        flaky.faults = ["lost"]
        with pytest.raises(Unavailable):
            await writer.execute(stream, "a", context("cmd"))
        await writer.execute(stream, "a", context("cmd"))
    assert await folded(log, stream) == ("a",)


async def test_an_uncertain_append_that_lands_late_never_counts(log, stream):
    flaky = FlakyLog(log)
    async with owner(flaky) as writer:
        await writer.claim(stream)
        flaky.faults = ["hold"]
        with pytest.raises(Unavailable):
            await writer.execute(stream, "late", context())
        await writer.execute(stream, "a", context())
        await flaky.release()
        await writer.execute(stream, "b", context())
    assert await folded(log, stream) == ("a", "b")


async def test_commands_on_one_stream_take_turns(log, stream):
    async with owner(log) as writer:
        await writer.claim(stream)
        await asyncio.gather(*(writer.execute(stream, f"w{i}", context()) for i in range(20)))
    assert sorted(await folded(log, stream)) == sorted(f"w{i}" for i in range(20))


async def test_a_commit_that_is_too_large_is_refused_and_nothing_is_written(log, stream):
    async with owner(log) as writer:
        await writer.claim(stream)
        with pytest.raises(CommandRejected, match="blob"):
            await writer.execute(stream, "x" * (1 << 20), context())
        await writer.execute(stream, "a", context())
    assert await folded(log, stream) == ("a",)


async def test_poison_stops_nobody(log, stream):
    partition = partition_of(root_key(stream), FACT_PARTITIONS)
    async with owner(log) as writer:
        await writer.claim(stream)
        await log.append(ATTEMPTS, partition, b"", b"\xff not a commit", ())
        await writer.execute(stream, "a", context())
    assert await folded(log, stream) == ("a",)


async def test_a_decider_halts_on_a_fact_of_a_newer_schema(log, stream):
    partition = partition_of(root_key(stream), FACT_PARTITIONS)
    async with owner(log) as writer:
        await writer.claim(stream)
        await writer.execute(stream, "a", context())
        term = writer.owner_term(stream)
    future = replace(TEMPLATE, commit_id=uuid7(), stream=stream, first_seq=2, term=term)
    await log.append(ATTEMPTS, partition, b"", encode_commit(future), ())
    async with owner(log) as older:
        await older.claim(stream)
        with pytest.raises(CorruptLog, match="999"):
            await older.execute(stream, "b", context())
