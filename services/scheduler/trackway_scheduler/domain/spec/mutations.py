"""`retry.REASON.mutate`: by which steps the attempt after a failure may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trackway_common.events import TerminationReason
from trackway_common.fields import Fields, nearest

from trackway_scheduler.domain.ladder import LADDERS, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a spec lets change between attempts."""

    roles: frozenset[str]
    """Of `tunable`."""
    classes: int
    """How many `compute` lists."""


def mutate(one: Fields, reason: TerminationReason, declared: Declared) -> tuple[str, ...]:
    """Read the steps; each must be one that helps against the reason, and that the spec allows."""
    ladder = LADDERS.get(reason, ())
    words = one.texts("mutate")
    if one.has("mutate") and not ladder:
        one.violation("mutate", f"nothing about the run's shape mends {reason}; leave it out")
        return ()
    for i, word in enumerate(words):
        if problem := _problem(word, ladder, words[:i], declared):
            one.violation(f"mutate[{i}]", problem)
    return words


def lacks(step: Step, declared: Declared) -> str:
    """What the spec would have to declare for a step; empty where it does."""
    if step is Step.NEXT_COMPUTE:
        return "" if declared.classes > 1 else "write `compute: [CLASS, LARGER]`"
    missing = [role for role in _NEEDS[step] if role not in declared.roles]
    return f"declare {' and '.join(missing)} under `tunable`" if missing else ""


def _problem(word: str, ladder: tuple[Step, ...], before: tuple[str, ...], declared: Declared) -> str:
    if word in before:
        return f"{word!r} stands twice"
    if word not in ladder:
        names = [step.value for step in ladder]
        return f"{word!r} is no step against this reason{nearest(word, names)}; one of {', '.join(names)}"
    missing = lacks(Step(word), declared)
    return f"{word} needs more than the spec declares: {missing}" if missing else ""


_NEEDS: Mapping[Step, tuple[str, ...]] = MappingProxyType(
    {
        Step.HALVE_MICRO_BATCH: ("micro_batch", "accumulation"),
        Step.CHECKPOINT_ACTIVATIONS: ("activation_checkpointing",),
        Step.MORE_SHARDS: ("shards",),
        Step.NEXT_COMPUTE: (),
        Step.RAISE_MEMORY: (),
        Step.FEWER_LOADER_WORKERS: ("loader_workers",),
        Step.HALVE_LEARNING_RATE: ("learning_rate",),
    }
)
