"""Nodes that a run keeps away from: a fold over the ends that were blamed on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trackway_common.events import AttemptShape, Change, RetryDecided, TerminationReason

from trackway_scheduler.domain.ladder import Room, Rung

AT_ONCE = frozenset({TerminationReason.NODE_LOST, TerminationReason.DEVICE_HARDWARE, TerminationReason.LAUNCH_FAILED})
"""Reasons that speak against the node itself."""
FIELD = "excluded_nodes"


def exclude(
    shape: AttemptShape, reason: TerminationReason, node: str | None, decisions: Sequence[RetryDecided], room: Room
) -> Rung:
    """Keep away from a node that was blamed; the same shape where nothing speaks against one.

    Args:
        node: that the end is blamed on, if any.
        decisions: on earlier ends of the run.
        room: a pool of one living node is not narrowed. It may be the blamed one, come back; nothing could be placed.
    """
    if not node or node in shape.excluded_nodes or not _speaks_against(reason, node, decisions):
        return Rung(shape=shape, changes=())
    if room.nodes <= 1:
        return Rung(shape=shape, changes=())
    times = "twice" if reason not in AT_ONCE else "there"
    return _with(shape, (*shape.excluded_nodes, node), f"{reason} {times} on node {node}")


def drop_oldest(shape: AttemptShape) -> Rung:
    """Let the node back in that was excluded first; the same shape where none is."""
    if not shape.excluded_nodes:
        return Rung(shape=shape, changes=())
    why = "the cluster has no room for the gang without its nodes; the oldest exclusion is dropped"
    return _with(shape, shape.excluded_nodes[1:], why)


def _speaks_against(reason: TerminationReason, node: str, decisions: Sequence[RetryDecided]) -> bool:
    if reason is TerminationReason.PROCESS_CRASH:
        return any(one.reason is reason and one.blamed_node == node for one in decisions)
    return reason in AT_ONCE


def _with(shape: AttemptShape, nodes: tuple[str, ...], why: str) -> Rung:
    before, after = ", ".join(shape.excluded_nodes), ", ".join(nodes)
    change = Change(field=FIELD, before=before, after=after, why=why)
    return Rung(shape=replace(shape, excluded_nodes=nodes), changes=(change,))
