"""The data order is one order, whatever splits it: nothing is lost, nothing comes twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from trackway.training import CheckpointIncompatible, DataCursor
from trackway.training.permutation import shuffled
from trackway.training.phase_clock import PhaseClock
from trackway_common.clock import ManualClock

SEEDS = st.integers(0, 2**64 - 1)


def ranks(cursor_args: dict[str, int], world_size: int, state: dict[str, int] | None = None) -> list[DataCursor]:
    made = []
    for rank in range(world_size):
        cursor = DataCursor(**cursor_args)
        cursor.bind(rank=rank, world_size=world_size)
        if state is not None:
            cursor.load_state_dict(state)
        made.append(cursor)
    return made


@given(length=st.integers(1, 3000), key=SEEDS)
def test_shuffle_is_a_bijection(length: int, key: int) -> None:
    order = shuffled(np.arange(length, dtype=np.uint64), length=length, key=key)
    assert sorted(order.tolist()) == list(range(length))


def test_shuffle_is_pinned_for_all_time() -> None:
    """A run that resumes under a later version must find the order that it began with."""
    order = shuffled(np.arange(12, dtype=np.uint64), length=12, key=7)
    assert order.tolist() == [0, 2, 11, 4, 6, 7, 5, 8, 9, 3, 1, 10]
    assert DataCursor(seed=3, dataset_len=10, batch_size=4).order(8, 14) == [0, 7, 4, 5, 9, 7]


def test_shuffle_spreads_evenly() -> None:
    """Where sample 0 lands over many passes: chi-square over 16 bins, far below its 0.999 quantile of 37.7."""
    landed = [
        int(np.flatnonzero(shuffled(np.arange(160, dtype=np.uint64), length=160, key=key) == 0)[0])
        for key in range(1600)
    ]
    counts = np.bincount(np.array(landed) // 10, minlength=16)
    assert ((counts - 100) ** 2 / 100).sum() < 37.7


@given(
    seed=SEEDS,
    dataset_len=st.integers(1, 60),
    batch_size=st.integers(1, 17),
    splits=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 6)), min_size=1, max_size=6),
)
def test_any_split_over_ranks_and_restarts_gives_the_same_order(
    seed: int, dataset_len: int, batch_size: int, splits: list[tuple[int, int]]
) -> None:
    args = {"seed": seed, "dataset_len": dataset_len, "batch_size": batch_size}
    state = DataCursor(**args).state_dict()
    seen: list[int] = []
    for world_size, steps in splits:
        cursors = ranks(args, min(world_size, batch_size), state)
        for _ in range(steps):
            for cursor in cursors:
                seen += next(cursor)
        states = [cursor.state_dict() for cursor in cursors]
        assert states == [states[0]] * len(states)
        state = states[0]
    assert state["samples_consumed"] == len(seen)
    for start in range(0, len(seen) - dataset_len + 1, dataset_len):
        assert sorted(seen[start : start + dataset_len]) == list(range(dataset_len))
    assert seen == DataCursor(**args).order(0, len(seen))


def test_every_pass_has_another_order() -> None:
    cursor = DataCursor(seed=1, dataset_len=50, batch_size=50)
    first, second = next(cursor), next(cursor)
    assert first != second
    assert sorted(first) == sorted(second)
    assert cursor.data_epoch == 2


def test_batch_size_may_change_on_resume() -> None:
    before = DataCursor(seed=1, dataset_len=40, batch_size=8)
    seen = next(before) + next(before)
    after = DataCursor(seed=1, dataset_len=40, batch_size=6)
    after.load_state_dict(before.state_dict())
    seen += next(after) + next(after) + next(after) + next(after)
    assert sorted(seen) == list(range(40))


@pytest.mark.parametrize("other", [{"seed": 2}, {"dataset_len": 41}])
def test_state_of_another_order_is_refused(other: dict[str, int]) -> None:
    args = {"seed": 1, "dataset_len": 40, "batch_size": 8}
    with pytest.raises(CheckpointIncompatible, match=next(iter(other))):
        DataCursor(**{**args, **other}).load_state_dict(DataCursor(**args).state_dict())


def test_more_ranks_than_samples_in_a_batch_are_refused() -> None:
    with pytest.raises(ValueError, match="without a sample"):
        DataCursor(seed=0, dataset_len=10, batch_size=2).bind(rank=0, world_size=3)


class Squares(torch.utils.data.Dataset[torch.Tensor]):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index**2)

    def __len__(self) -> int:
        return 40


def test_loader_counts_what_was_handed_out_not_what_was_read_ahead() -> None:
    cursor = DataCursor(seed=1, dataset_len=40, batch_size=8)
    loader = cursor.loader(Squares(), num_workers=0)
    batches = [next(loader).tolist() for _ in range(3)]
    assert cursor.samples_consumed == 24
    order = DataCursor(seed=1, dataset_len=40, batch_size=8).order(0, 24)
    assert [item for batch in batches for item in batch] == [index**2 for index in order]


def test_waits_for_indices_and_batches_are_counted() -> None:
    time = ManualClock()
    clock = PhaseClock(time.monotonic)
    clock.step()

    class Slow(Squares):
        def __getitem__(self, index: int) -> torch.Tensor:
            time.advance(0.5)
            return super().__getitem__(index)

    cursor = DataCursor(seed=1, dataset_len=40, batch_size=8)
    cursor.bind(rank=0, world_size=1, clock=clock)
    loader = cursor.loader(Slow(), num_workers=0)
    for _ in range(3):
        next(loader)
        time.advance(10.0)
    assert clock.read().data_wait_seconds == 3 * 8 * 0.5
    assert clock.read().step_seconds == 30.0


def test_loader_leaves_trainings_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    next(DataCursor(seed=1, dataset_len=40, batch_size=8).loader(Squares()))
    assert torch.equal(torch.rand(3), expected)
