"""Keeps a gang's bundles off nodes, by Ray's own label of a node's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trackway_trainer_agent.gangs import NotGranted

NODE_ID = "ray.io/node-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingNode:
    """A node that the cluster's head counts as alive."""

    node_id: str
    host: str
    resources: Mapping[str, float]
    """In all, used or not."""


def node_selector(
    excluded: Sequence[str], bundles: Sequence[Mapping[str, float]], nodes: Sequence[LivingNode]
) -> dict[str, str]:
    """Label selector for each bundle; empty where no living node is excluded.

    Raises:
        NotGranted: what is left could never hold the gang, so nothing is waited for.
    """
    unwanted = sorted(node.node_id for node in nodes if {node.node_id, node.host} & set(excluded))
    if not unwanted:
        return {}
    left = [node for node in nodes if node.node_id not in unwanted]
    for name in sorted({name for bundle in bundles for name in bundle}):
        need = sum(bundle.get(name, 0.0) for bundle in bundles)
        have = sum(node.resources.get(name, 0.0) for node in left)
        if have < need:
            raise NotGranted(
                f"without the excluded nodes {', '.join(excluded)} the cluster has {have:g} {name} in all,"
                f" the gang needs {need:g}"
            )
    return {NODE_ID: f"!in({','.join(unwanted)})"}
