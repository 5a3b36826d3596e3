"""Whatever stands in the fields that shape retries, it is read or refused by field; reading never breaks."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from trackway_common.errors import CommandRejected
from trackway_common.events import RunSpec, TerminationReason
from trackway_common.yaml_core import load_yaml
from trackway_scheduler.domain.ladder import Step
from trackway_scheduler.domain.spec import read_spec, resolve

from tests.unit.scheduler.specs import SPEC, submission, surroundings

words = st.sampled_from([
    *(reason.value.lower() for reason in TerminationReason), *Step, "max", "min", "mutate", "backoff_s", "ceiling", "*",
    "micro_batch", "accumulation", "shards", "batch_size", "lr", "steps", "local-cpu-2x", "gpu-1x",
]).map(str)  # fmt: skip
numbers = st.one_of(st.integers(-3, 2**60), st.floats(-2, 2), st.sampled_from([float("nan"), float("inf")]))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words, st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("retry", "tunable", "topology", "compute"), anything)))
@example({"topology": {"world_size": {"min": 1, "max": 2}, "world_size_wait_s": 0}, "compute": ["local-cpu-2x"]})
@example({"retry": {"device_oom": {"mutate": ["next_compute"]}}, "compute": ["local-cpu-2x", "gpu-1x"]})
def test_reading_never_breaks(changes):
    answer = submitted({**load_yaml(SPEC.encode(), name="config"), **changes})
    if isinstance(answer, CommandRejected):
        assert answer.violations
        assert all(one.field and one.description for one in answer.violations)
        return
    assert all(override.max >= -1 for override in answer.retry)
    assert all(set(override.mutate) <= set(Step) for override in answer.retry)
    assert answer.topology.min_world_size < answer.topology.world_size
    assert all(one.pool for one in answer.compute_alternatives)


def submitted(written) -> RunSpec | CommandRejected:
    try:
        return resolve(read_spec(written, submission()), surroundings())
    except CommandRejected as refused:
        return refused
