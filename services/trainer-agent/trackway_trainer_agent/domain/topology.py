"""Numbers that torchrun's contract wants, from where the ranks landed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNumbers:
    """One rank's place among its node's ranks, and its node's among the nodes."""

    rank: int
    local_rank: int
    local_world_size: int
    group_rank: int
    group_world_size: int
    neighbours: tuple[int, ...]
    """Ranks of this node in the order of their local ranks, this one among them."""


def number_ranks(nodes: Sequence[str]) -> tuple[RankNumbers, ...]:
    """Number the ranks; ``nodes[rank]`` is where it landed. Nodes are numbered as their lowest ranks are."""
    ranks_of: dict[str, list[int]] = {}
    for rank, node in enumerate(nodes):
        ranks_of.setdefault(node, []).append(rank)
    group_of = {node: group for group, node in enumerate(ranks_of)}
    return tuple(
        RankNumbers(
            rank=rank,
            local_rank=ranks_of[node].index(rank),
            local_world_size=len(ranks_of[node]),
            group_rank=group_of[node],
            group_world_size=len(ranks_of),
            neighbours=tuple(ranks_of[node]),
        )
        for rank, node in enumerate(nodes)
    )
