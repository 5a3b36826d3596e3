"""What an attempt that ran out of memory does differently: one step at a time, only over what is declared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.canonical import digest_bytes
from trackway_common.events import Change, RetryOverride
from trackway_common.events import TerminationReason as Reason
from trackway_scheduler.domain.ladder import LADDERS, Barred, Room, Rung, Step, climb, steps_of

from tests.unit.scheduler.builders import run_spec
from tests.unit.scheduler.shapes import GIB, KEYS, ROOM, shape, tunable_spec, values

BATCH = ("micro_batch", "accumulation")


def climbed(reason: Reason, spec, room: Room = ROOM) -> Rung:
    taken = climb(reason, shape(spec), spec, room)
    assert isinstance(taken, Rung), taken
    return taken


def barred(reason: Reason, spec, room: Room = ROOM) -> dict[Step, str]:
    taken = climb(reason, shape(spec), spec, room)
    assert not isinstance(taken, Rung), taken
    return {one.step: one.why for one in taken}


def test_half_the_micro_batch_and_twice_the_passes_come_first():
    spec = tunable_spec({"batch": 64, "passes": 1, "recompute": False}, *BATCH, "activation_checkpointing")
    rung = climbed(Reason.DEVICE_OOM, spec)
    assert values(rung.shape) == {"batch": 32, "passes": 2, "recompute": False}
    assert rung.shape.config_digest == digest_bytes(rung.shape.hyperparameters_json.encode())
    why = "half the samples in one pass, twice the passes: the same batch"
    assert rung.changes == (
        Change(field="hyperparameters.batch", before="64", after="32", why=why),
        Change(field="hyperparameters.passes", before="1", after="2", why=why),
    )


@pytest.mark.parametrize("size", [1, 7])
def test_an_odd_micro_batch_is_not_halved(size):
    spec = tunable_spec({"batch": size, "passes": 1, "recompute": False}, *BATCH, "activation_checkpointing")
    assert climbed(Reason.DEVICE_OOM, spec).changes[0].field == "hyperparameters.recompute"
    assert (
        f"batch is {size}"
        in barred(Reason.DEVICE_OOM, tunable_spec({"batch": size, "passes": 1}, *BATCH))[Step.HALVE_MICRO_BATCH]
    )


def test_a_micro_batch_without_accumulation_would_change_the_batch():
    found = barred(Reason.DEVICE_OOM, tunable_spec({"batch": 8}, "micro_batch"))
    assert found[Step.HALVE_MICRO_BATCH].startswith("declare accumulation under")


def test_what_is_not_declared_is_named_for_every_step():
    found = barred(Reason.DEVICE_OOM, tunable_spec({"batch": 8}))
    assert tuple(found) == LADDERS[Reason.DEVICE_OOM]
    assert "declare micro_batch and accumulation under `tunable`" in found[Step.HALVE_MICRO_BATCH]
    assert "declare activation_checkpointing" in found[Step.CHECKPOINT_ACTIVATIONS]
    assert "declare shards" in found[Step.MORE_SHARDS]
    assert "compute: [CLASS, LARGER]" in found[Step.NEXT_COMPUTE]


def test_shards_double_up_to_the_ranks_there_are():
    two = tunable_spec({"shards": 1}, "shards")
    assert values(climbed(Reason.DEVICE_OOM, two).shape) == {"shards": 2}
    assert "do not fit 2 ranks" in barred(Reason.DEVICE_OOM, tunable_spec({"shards": 2}, "shards"))[Step.MORE_SHARDS]


@pytest.mark.parametrize(("least", "fits"), [(0, 8), (4, 4), (3, 4), (1, 1)])
def test_shards_fit_the_smallest_gang_that_the_run_may_get(least, fits):
    topology = replace(run_spec().topology, world_size=8, min_world_size=least)
    if fits > 1:
        before = tunable_spec({"shards": fits // 2}, "shards", topology=topology)
        assert values(climbed(Reason.DEVICE_OOM, before).shape) == {"shards": fits}
    found = barred(Reason.DEVICE_OOM, tunable_spec({"shards": fits}, "shards", topology=topology))
    assert f"do not fit {fits} ranks" in found[Step.MORE_SHARDS]
    assert ("the smallest gang" in found[Step.MORE_SHARDS]) == (fits < 8)


def test_the_next_class_is_the_last_resort():
    spec = tunable_spec({"recompute": True}, "activation_checkpointing", classes=("small", "large"))
    rung = climbed(Reason.DEVICE_OOM, spec)
    assert rung.shape.compute.compute_class == "large"
    assert (rung.changes[0].before, rung.changes[0].after) == ("small", "large")
    last = climb(Reason.DEVICE_OOM, rung.shape, spec, ROOM)
    assert Barred(step=Step.NEXT_COMPUTE, why="large is the last of `compute`") in last


def test_host_memory_is_raised_by_half_within_the_pool():
    spec = tunable_spec({"workers": 5}, "loader_workers")
    rung = climbed(Reason.HOST_OOM, spec)
    assert rung.shape.compute.memory_bytes_per_rank == 3 * GIB
    assert rung.changes[0].field == "compute.memory_bytes_per_rank"


SMALL_NODES = Room(memory_bytes=16 * GIB, nodes=8, largest_node_memory_bytes=2 * GIB)


@pytest.mark.parametrize("room", [Room(), Room(memory_bytes=5 * GIB), SMALL_NODES])
def test_without_room_there_are_fewer_loader_workers(room):
    spec = tunable_spec({"workers": 5}, "loader_workers")
    assert values(climbed(Reason.HOST_OOM, spec, room).shape) == {"workers": 2}
    found = barred(Reason.HOST_OOM, tunable_spec({"workers": 0}, "loader_workers"), room)
    assert "pool local" in found[Step.RAISE_MEMORY]
    assert "no loader worker is left" in found[Step.FEWER_LOADER_WORKERS]


def test_a_spec_chooses_its_steps_and_their_order():
    override = RetryOverride(reason=Reason.DEVICE_OOM, max=3, mutate=("next_compute", "halve_micro_batch"))
    spec = tunable_spec({"batch": 8, "passes": 1}, *BATCH, classes=("small", "large"), retry=(override,))
    assert steps_of(spec, Reason.DEVICE_OOM) == (Step.NEXT_COMPUTE, Step.HALVE_MICRO_BATCH)
    assert climbed(Reason.DEVICE_OOM, spec).changes[0].field == "compute"


def test_a_diverged_run_learns_slower_only_where_its_spec_says_so():
    assert steps_of(tunable_spec({"lr": 0.1}, "learning_rate"), Reason.NUMERIC_DIVERGENCE) == ()
    override = RetryOverride(reason=Reason.NUMERIC_DIVERGENCE, max=1, mutate=("halve_learning_rate",))
    spec = tunable_spec({"lr": 0.1}, "learning_rate", retry=(override,))
    assert values(climbed(Reason.NUMERIC_DIVERGENCE, spec).shape) == {"lr": 0.05}


anything = st.one_of(st.none(), st.booleans(), st.integers(-4, 1 << 45), st.floats(0, 1e6), st.text(max_size=3))
hyperparameters = st.fixed_dictionaries(
    {}, optional={key: st.one_of(st.integers(0, 4096), anything) for key in KEYS.values()}
)


@given(
    hyperparameters,
    st.sets(st.sampled_from(sorted(KEYS))),
    st.sampled_from(sorted(LADDERS)),
    st.booleans(),
    st.integers(0, 64),
)
def test_a_step_changes_something_keeps_the_batch_and_ends(config, roles, reason, two_classes, room_gib):
    override = RetryOverride(reason=Reason.NUMERIC_DIVERGENCE, max=-1, mutate=("halve_learning_rate",))
    classes = ("small", "large") if two_classes else ("small",)
    spec = tunable_spec(config, *sorted(roles), classes=classes, retry=(override,))
    before, room, steps = shape(spec), Room(memory_bytes=room_gib * GIB), 0
    while isinstance(rung := climb(reason, before, spec, room), Rung) and steps < 20:
        after, steps = rung.shape, steps + 1
        assert after != before
        assert rung.changes
        assert all(change.before != change.after and change.why for change in rung.changes)
        assert batch_of(values(after)) == batch_of(values(before))
        assert after.config_digest == digest_bytes(after.hyperparameters_json.encode())
        changed = {change.field.partition(".")[2] for change in rung.changes if change.field.startswith("hyper")}
        assert changed <= {KEYS[role] for role in roles}
        before = after
    if not isinstance(rung, Rung):
        assert all(one.why for one in rung)


def batch_of(config: dict[str, object]) -> object:
    size, passes = config.get("batch"), config.get("passes")
    return size * passes if isinstance(size, int) and isinstance(passes, int) else (size, passes)
