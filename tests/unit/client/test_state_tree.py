"""State goes through JSON and a tensor file and comes back the same, bit for bit and type for type."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load, save
from trackway.training import CheckpointCorrupt
from trackway.training.optimizer_state import load_optimizer
from trackway.training.state_tree import Tensors, flatten, unflatten
from trackway.training.tensor_file import DTYPES, plan_file, read_file

CPU = torch.device("cpu")


def written(tensors: Tensors, metadata: dict[str, str] | None = None) -> bytearray:
    planned = plan_file(tensors, metadata or {})
    buffer = bytearray(planned.size_bytes + 100)  # Staging memory is larger than what is in it.
    planned.write(memoryview(buffer))
    return buffer[: planned.size_bytes]


def through(state: Any) -> Any:
    tensors: Tensors = {}
    text = json.dumps(flatten(state, "state", tensors))
    read, _ = read_file(written(tensors))
    return unflatten(json.loads(text), read, CPU)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(PLAIN)
def test_plain_state_comes_back_with_its_types(state: Any) -> None:
    assert same(through(state), state)


def test_nan_and_infinities_come_back() -> None:
    back = through([math.nan, math.inf, -math.inf, -0.0])
    assert math.isnan(back[0])
    assert back[1:3] == [math.inf, -math.inf]
    assert math.copysign(1, back[3]) == -1


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES.keys())
def test_tensors_of_every_type_come_back_bit_for_bit(dtype: torch.dtype) -> None:
    raw = torch.randint(0, 2 if dtype is torch.bool else 256, (6, 4 * dtype.itemsize), dtype=torch.uint8)
    tensor = raw.view(dtype)
    back = through({"a": tensor, "scalar": tensor[0, 0], "none": tensor[:0], "strided": tensor.t()})
    assert back["a"].dtype is dtype
    assert torch.equal(back["a"].view(torch.uint8), raw)
    assert back["scalar"].shape == ()
    assert back["none"].shape == (0, 4)
    assert torch.equal(back["strided"].contiguous().view(torch.uint8), tensor.t().contiguous().view(torch.uint8))


def test_numpy_comes_back() -> None:
    back = through(
        {"array": np.arange(6, dtype=np.uint32).reshape(2, 3), "number": np.float64(0.1), "flag": np.int64(3)}
    )
    assert back["array"].dtype == np.uint32
    assert back["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (type(back["number"]), back["number"]) == (np.float64, 0.1)
    assert type(back["flag"]) is np.int64


def test_names_that_collide_do_not_overwrite_each_other() -> None:
    back = through({"a/b": torch.tensor(1), "a": {"b": torch.tensor(2)}})
    assert (back["a/b"].item(), back["a"]["b"].item()) == (1, 2)


@pytest.mark.parametrize("state", [{"f": print}, [object()], {1: {2}}, {"s": torch.eye(3).to_sparse()}])
def test_what_has_no_exact_form_is_refused_by_place(state: Any) -> None:
    with pytest.raises(TypeError, match="state/"):
        flatten(state, "state", {})


def test_file_is_readable_by_safetensors_and_the_other_way_round() -> None:
    tensors = {"w": torch.randn(3, 5), "b": torch.randn(7).bfloat16(), "n": torch.tensor(3), "e": torch.empty(0, 2)}
    theirs = load(bytes(written(tensors, {"trackway": "{}"})))
    assert {name: torch.equal(theirs[name], tensor) for name, tensor in tensors.items()} == dict.fromkeys(tensors, True)
    ours, metadata = read_file(bytearray(save(tensors, {"key": "value"})))
    assert all(torch.equal(ours[name], tensor) for name, tensor in tensors.items())
    assert metadata == {"key": "value"}


@given(st.data())
def test_damaged_file_is_an_error_not_a_crash(data: st.DataObject) -> None:
    file = written({"w": torch.arange(6.0), "b": torch.arange(3)})
    position = data.draw(st.integers(0, len(file) - 1))
    file[position] = data.draw(st.integers(0, 255))
    try:
        read_file(file[: data.draw(st.integers(0, len(file)))])
    except CheckpointCorrupt:
        return


def model_and_optimizer(dtype: torch.dtype) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(4, 3).to(dtype)
    return model, torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-2) if dtype is torch.float32 else 1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_optimizer_goes_on_exactly(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, optimizer = model_and_optimizer(dtype)
    data = torch.randn(8, 4, dtype=dtype)

    def step(module: torch.nn.Module, with_optimizer: torch.optim.Optimizer) -> float:
        with_optimizer.zero_grad()
        loss = module(data).square().mean()
        loss.backward()
        with_optimizer.step()
        return float(loss)

    for _ in range(3):
        step(model, optimizer)
    if dtype is torch.bfloat16:
        # Moments kept in fp32 beside bf16 weights, as mixed-precision optimizers do.
        for state in optimizer.state.values():
            state["exp_avg"] = state["exp_avg"].float() + 1e-6
    kept = through({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    other, other_optimizer = model_and_optimizer(dtype)
    other.load_state_dict(kept["model"])
    load_optimizer(other_optimizer, kept["optimizer"])
    pairs = zip(optimizer.state.values(), other_optimizer.state.values(), strict=True)
    for left, right in pairs:
        assert {key: value.dtype for key, value in left.items()} == {key: value.dtype for key, value in right.items()}
        assert all(torch.equal(left[key], right[key]) for key in left)
    if dtype is torch.float32:
        assert [step(model, optimizer) for _ in range(3)] == [step(other, other_optimizer) for _ in range(3)]
