"""Which nodes a gang's bundles keep off, in Ray's own words."""

from __future__ import annotations

import pytest
from trackway_trainer_agent.adapters.ray_exclusion import LivingNode, node_selector
from trackway_trainer_agent.gangs import NotGranted

NODES = tuple(
    LivingNode(node_id=name * 4, host=f"host-{name}", resources={"CPU": 2.0, "memory": 100.0}) for name in "abc"
)
TWO = [{"CPU": 1.0, "memory": 40.0}] * 2


@pytest.mark.parametrize(
    ("excluded", "selector"),
    [
        ((), {}),
        (("host-z", "zzzz"), {}),
        (("host-b",), {"ray.io/node-id": "!in(bbbb)"}),
        (("host-b", "aaaa"), {"ray.io/node-id": "!in(aaaa,bbbb)"}),
    ],
)
def test_living_nodes_are_excluded_by_host_or_id(excluded, selector):
    assert node_selector(excluded, TWO, NODES) == selector


def test_a_gang_that_can_not_fit_without_them_is_refused_at_once():
    with pytest.raises(NotGranted, match="without the excluded nodes host-a, host-b, host-c the cluster has 0 CPU"):
        node_selector(("host-a", "host-b", "host-c"), TWO, NODES)
    with pytest.raises(NotGranted, match="has 100 memory in all, the gang needs 120"):
        node_selector(("host-a", "host-b"), [{"CPU": 0.1, "memory": 60.0}] * 2, NODES)
