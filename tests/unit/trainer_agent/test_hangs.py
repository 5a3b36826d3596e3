"""A gang that gets nowhere: who waits, who is missing, and how the attempt is closed."""

from __future__ import annotations

import asyncio
import threading

import pytest
from trackway_common import events as e
from trackway_common.clock import ManualClock
from trackway_common.events import TerminationReason as Reason
from trackway_common.object_store import BlobStore, InMemoryObjectStore
from trackway_common.testing.run_facts import RUN_ID
from trackway_trainer_agent.domain.classify import Classification, classify
from trackway_trainer_agent.domain.observations import Frame, Hang, StuckRank
from trackway_trainer_agent.domain.stack_text import main_frames
from trackway_trainer_agent.gangs import Bundle, GangName, GangRequest
from trackway_trainer_agent.shell import keeping
from trackway_trainer_agent.shell.gang_watch import Watched
from trackway_trainer_agent.shell.hang_watch import HangWatch
from trackway_trainer_agent.worker.records import Overdue, RankPhase, StackDump

from tests.unit.trainer_agent.ends import CANCEL, T0, stopped
from tests.unit.trainer_agent.ends import ended as failed
from tests.unit.trainer_agent.fake_gangs import FakeGangs
from tests.unit.trainer_agent.world import World

TORCH = "/venv/lib/python3.11/site-packages/torch"
ALL_REDUCE = (
    Frame(file="/code/train.py", line=12, function="main"),
    Frame(file=f"{TORCH}/distributed/c10d_logger.py", line=81, function="wrapper"),
    Frame(file=f"{TORCH}/distributed/distributed_c10d.py", line=2806, function="all_reduce"),
)
BACKWARD = (
    Frame(file="/code/train.py", line=20, function="step"),
    Frame(file=f"{TORCH}/autograd/graph.py", line=824, function="_engine_run_backward"),
)
LOADING = (
    Frame(file="/code/train.py", line=12, function="main"),
    Frame(file="/code/data.py", line=44, function="next_batch"),
    Frame(file="/usr/lib/python3.11/threading.py", line=320, function="wait"),
)
DUMP = """Thread 0x00007f11 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f22 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/code/data.py", line 44 in next_batch
  File "/code/train.py", line 12 in main

Thread 0x00007f33 (most recent call first):
  File "/code/other.py", line ??? in run
"""


def stuck(rank: int, frames: tuple[Frame, ...], last_step: int = 7) -> StuckRank:
    return StuckRank(
        rank=rank, node=f"n{rank}", last_step=last_step, silent_s=61, frames=frames, stacks_source="faulthandler"
    )


def judged(*ranks: StuckRank, stepped: bool = True) -> Classification:
    hang = Hang(ranks=ranks, limit_s=60, stepped=stepped, at_ms=T0)
    return classify(len(ranks), (hang, *(stopped(one.rank) for one in ranks)))


@pytest.mark.parametrize("waits_in", [ALL_REDUCE, BACKWARD])
def test_the_rank_that_did_not_enter_the_collective_is_blamed(waits_in: tuple[Frame, ...]):
    verdict = judged(stuck(0, waits_in), stuck(1, LOADING), stuck(2, waits_in))
    assert (verdict.reason, verdict.blamed_rank, verdict.blamed_node) == (Reason.COLLECTIVE_TIMEOUT, 1, "n1")
    assert "ranks 0, 2 wait" in verdict.cause
    assert "rank 1 did not enter (after step 7, in next_batch at data.py:44)" in verdict.cause


def test_nobody_is_blamed_when_all_wait_alike():
    verdict = judged(stuck(0, ALL_REDUCE), stuck(1, ALL_REDUCE))
    assert (verdict.reason, verdict.blamed_rank) == (Reason.COLLECTIVE_TIMEOUT, None)


def test_the_rank_that_is_behind_is_blamed_when_all_wait():
    verdict = judged(stuck(0, ALL_REDUCE, last_step=9), stuck(1, ALL_REDUCE, last_step=8))
    assert (verdict.reason, verdict.blamed_rank) == (Reason.COLLECTIVE_TIMEOUT, 1)


@pytest.mark.parametrize(("frames", "place"), [(LOADING, "in next_batch at data.py:44"), ((), "after step 7")])
def test_without_a_collective_it_is_a_stall(frames: tuple[Frame, ...], place: str):
    verdict = judged(stuck(0, frames))
    assert (verdict.reason, verdict.blamed_rank) == (Reason.STALLED, 0)
    assert place in verdict.cause
    assert verdict.confidence == (0.9 if frames else 0.6)


def test_a_hang_before_the_first_step_says_so():
    assert "before the first step" in judged(stuck(0, LOADING), stepped=False).cause


def test_our_own_intent_outranks_a_hang():
    hang = Hang(ranks=(stuck(0, LOADING),), limit_s=60, stepped=True, at_ms=T0)
    assert classify(1, (CANCEL, hang, stopped(0))).reason is Reason.CANCELLED_BY_USER


def test_the_main_thread_is_the_current_one():
    assert [frame.function for frame in main_frames(DUMP)] == ["main", "next_batch", "wait"]


@pytest.mark.parametrize("text", ["", "thread 7 python: state S, waits in futex\n", "Thread 0x1 (most recent"])
def test_other_text_has_no_frames(text: str):
    assert main_frames(text) == ()


def test_the_last_thread_is_the_main_one_when_none_is_current():
    assert [frame.function for frame in main_frames(DUMP.replace("Current thread", "Thread"))] == ["run"]


async def test_a_gang_hangs_when_every_running_rank_is_overdue(world: World):
    late = Overdue(silent_s=61.0, limit_s=60.0, stepped=True)
    async with world.agent():
        await world.place(world_size=3)
        await world.fact(e.AttemptStarted)
        world.rank(2).exit(0)
        world.rank(0).overdue = late
        world.rank(1).stacks = DUMP
        await world.until(lambda: world.rank(0).told >= 1)
        assert "AttemptStopping" not in world.names()
        world.rank(1).overdue = late
        ended = await world.fact(e.AttemptEnded)
    assert (ended.reason, ended.blamed_node) == (Reason.STALLED, None)
    assert [one.hang is not None for one in ended.observations].count(True) == 1
    hang = next(one.hang for one in ended.observations if one.hang is not None)
    assert [(one.rank, one.stacks_source, len(one.frames)) for one in hang.ranks] == [
        (0, "none", 0),
        (1, "faulthandler", 3),
    ]
    digest = hang.ranks[1].stacks_digest
    assert digest is not None
    assert world.store.get(f"blobs/sha256/{digest.partition(':')[2]}").decode() == DUMP
    assert digest in {one.blob_digest for one in ended.evidence}


async def test_a_hang_is_over_when_a_deaf_rank_was_killed(world: World):
    async with world.agent():
        await world.place(world_size=1)
        await world.fact(e.AttemptStarted)
        world.rank(0).obeys = False
        world.rank(0).overdue = Overdue(silent_s=61.0, limit_s=60.0, stepped=False)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.STALLED
    assert "before the first step" in ended.cause


LATE = Overdue(silent_s=61.0, limit_s=60.0, stepped=True)
GANG = GangName(run_id=RUN_ID, attempt=1)


class SlowStacks(FakeGangs):
    """Gives stacks when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Semaphore(0)
        self.may_answer = asyncio.Event()

    async def stacks(self, gang: GangName, rank: int) -> StackDump:
        self.asked.release()
        await self.may_answer.wait()
        return await super().stacks(gang, rank)


class SlowBlobs(BlobStore):
    """Takes nothing before it is let."""

    def __init__(self) -> None:
        super().__init__(InMemoryObjectStore())
        self.may_answer = threading.Event()

    def put(self, content: bytes) -> str:
        self.may_answer.wait()
        return super().put(content)


async def running(gangs: FakeGangs, world_size: int) -> None:
    """Make a gang whose ranks all run."""
    await gangs.create(GangRequest(name=GANG, bundles=(Bundle(cpus=1.0),) * world_size, wait_s=1.0))
    for rank in range(world_size):
        gangs.rank(GANG, rank).phase = RankPhase.RUNNING


def watching(gangs: FakeGangs, world_size: int, blobs: BlobStore | None = None) -> HangWatch:
    watched = Watched(gang=GANG, cluster_id="c", hosts=("n",) * world_size)
    return HangWatch(gangs, watched, blobs or BlobStore(InMemoryObjectStore()), ManualClock())


async def tell(watch: HangWatch, gangs: FakeGangs, rank: int, overdue: Overdue | None) -> None:
    gangs.rank(GANG, rank).overdue = overdue
    watch.note(rank, await gangs.drain(GANG, rank, 0))


async def test_ranks_that_move_on_while_stacks_are_taken_do_not_hang():
    gangs = SlowStacks()
    await running(gangs, 2)
    watch = watching(gangs, 2)
    hung = asyncio.create_task(watch.hung())
    for overdue in (LATE, None):
        for rank in (0, 1):
            await tell(watch, gangs, rank, overdue)
        if overdue is LATE:
            await gangs.asked.acquire()
            await gangs.asked.acquire()
    gangs.may_answer.set()
    await tell(watch, gangs, 1, LATE)
    await asyncio.wait({hung}, timeout=0.05)
    assert not hung.done()
    await tell(watch, gangs, 0, LATE)
    assert [one.rank for one in (await hung).ranks] == [0, 1]


async def test_nothing_hangs_that_was_over_before_anybody_looked():
    gangs = SlowStacks()
    await running(gangs, 1)
    watch = watching(gangs, 1)
    hung = asyncio.create_task(watch.hung())
    await tell(watch, gangs, 0, LATE)
    watch.over(0)
    await asyncio.wait({hung}, timeout=0.05)
    assert not hung.done()
    hung.cancel()


async def test_a_store_that_takes_nothing_holds_no_hang_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keeping, "STORE_LIMIT_S", 0.05)
    gangs, blobs = FakeGangs(), SlowBlobs()
    await running(gangs, 1)
    gangs.rank(GANG, 0).stacks = DUMP
    watch = watching(gangs, 1, blobs)
    await tell(watch, gangs, 0, LATE)
    (stuck,) = (await watch.hung()).ranks
    blobs.may_answer.set()
    assert (len(stuck.frames), stuck.stacks_digest) == (3, None)


async def test_a_store_that_takes_nothing_leaves_the_observations_in_the_receipt(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keeping, "STORE_LIMIT_S", 0.05)
    blobs = SlowBlobs()
    seen = [failed(rank, code=1, stderr_tail=("x" * 500,) * 50) for rank in range(4)]
    kept = await keeping.keep(blobs, 4, seen)
    blobs.may_answer.set()
    assert (kept.digest, len(kept.inline)) == (None, 4)
