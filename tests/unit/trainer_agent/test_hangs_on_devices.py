"""A gang that hangs where collectives are only enqueued: ranks wait for their device, outside of torch.distributed."""

from __future__ import annotations

import pytest
from trackway_common.events import CausalRole
from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.domain.classify import Classification, classify
from trackway_trainer_agent.domain.observations import Frame, Hang, StuckRank

from tests.unit.trainer_agent.ends import T0, stopped

PACKAGES = "/venv/lib/python3.11/site-packages"
MAIN = Frame(file="/code/train.py", line=12, function="main")
STEP = Frame(file="/code/train.py", line=40, function="step")
ITEM = (MAIN, STEP)
SYNCHRONIZE = (MAIN, STEP, Frame(file=f"{PACKAGES}/torch/cuda/__init__.py", line=1040, function="synchronize"))
LOADER = (MAIN, STEP, Frame(file=f"{PACKAGES}/torch/utils/data/dataloader.py", line=1260, function="_try_get_data"))
QUEUE = (MAIN, STEP, Frame(file="/usr/lib/python3.11/threading.py", line=320, function="wait"))
READING = (MAIN, Frame(file="/code/data.py", line=44, function="next_batch"))
WRITING = (MAIN, Frame(file="/code/log.py", line=9, function="write"))


def judged(*stacks: tuple[Frame, ...]) -> Classification:
    ranks = tuple(
        StuckRank(rank=rank, node=f"n{rank}", last_step=7, silent_s=61, frames=frames, stacks_source="faulthandler")
        for rank, frames in enumerate(stacks)
    )
    hang = Hang(ranks=ranks, limit_s=60, stepped=True, at_ms=T0)
    return classify(len(ranks), (hang, *(stopped(one.rank) for one in ranks)))


@pytest.mark.parametrize("waits", [ITEM, SYNCHRONIZE])
def test_the_rank_that_stands_elsewhere_is_blamed(waits: tuple[Frame, ...]):
    verdict = judged(waits, READING, waits)
    assert (verdict.reason, verdict.blamed_rank, verdict.confidence) == (Reason.COLLECTIVE_TIMEOUT, 1, 0.6)
    assert "rank 1 did not enter (after step 7, in next_batch at data.py:44)" in verdict.cause
    roles = {one.rank: one.role for one in verdict.evidence if "stacks" in one.source}
    assert roles == {0: CausalRole.CASCADE, 1: CausalRole.INITIATING, 2: CausalRole.CASCADE}


@pytest.mark.parametrize(
    "stacks",
    [
        (ITEM, READING),
        (ITEM, ITEM, READING, WRITING),
        (ITEM, ITEM, READING, READING),
        (ITEM, ITEM, ITEM),
        (LOADER, LOADER, WRITING),
        (QUEUE, QUEUE, WRITING),
        ((), (), ITEM),
    ],
    ids=["two", "no majority", "half and half", "all alike", "loaders", "queues", "no stacks"],
)
def test_without_most_ranks_alike_at_a_device_it_is_a_stall(stacks: tuple[tuple[Frame, ...], ...]):
    assert judged(*stacks).reason is Reason.STALLED
