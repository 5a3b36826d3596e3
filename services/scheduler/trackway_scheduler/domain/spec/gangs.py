"""How many ranks a run has: one number, or a range and how long the whole gang is waited for."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.fields import Fields

from trackway_scheduler.domain.gang_sizes import smaller_gangs

MAX_RANKS = 65_536
DEFAULT_WAIT_S = 300.0
_LONGEST_WAIT_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSizes:
    """What the spec asks for."""

    whole: int
    least: int = 0
    """0 where only the whole gang will do."""
    wait_s: float = 0.0


def gangs(topology: Fields) -> GangSizes:
    """Read `world_size` and `world_size_wait_s`."""
    if topology.kind("world_size") != "a mapping":
        if topology.has("world_size_wait_s"):
            description = "says when a smaller gang starts; write world_size: {min: N, max: M} with it"
            topology.violation("world_size_wait_s", description)
        return GangSizes(whole=topology.whole("world_size", 1, at_least=1, at_most=MAX_RANKS))
    section = topology.section("world_size", ("min", "max"))
    for key in ("min", "max"):
        if not section.has(key):
            section.violation(key, "is required")
    whole = section.whole("max", 1, at_least=1, at_most=MAX_RANKS)
    least = section.whole("min", 1, at_least=1, at_most=MAX_RANKS)
    wait_s = topology.number("world_size_wait_s", DEFAULT_WAIT_S, low=0.0, high=_LONGEST_WAIT_S)
    if least > whole:
        section.violation("min", f"is {least}, and max is {whole}; write the smaller one under min")
    elif least < whole and not smaller_gangs(whole, least):
        section.violation("min", f"no size from {least} to {whole - 1} divides {whole}; a smaller gang would be uneven")
    return GangSizes(whole=whole, least=least if least < whole else 0, wait_s=wait_s)
