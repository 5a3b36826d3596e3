"""How a fault is made to happen: the run that is submitted, and what is done to it when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.faults.corpus.scene import Scene

LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Act:
    """Something done to the run, once: when the first fact of that name is told (of that attempt, where one is)."""

    on: str
    do: Callable[[Scene], None]
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """Of one fault."""

    kind: str = "wait"
    """What the program does, by its hyperparameters."""
    entry: Mapping[str, Any] = field(default_factory=lambda: {"function": "plain:main"})
    spec: Mapping[str, Any] = field(default_factory=dict)
    """What the run's spec says besides."""
    before: Callable[[Scene], Mapping[str, Any]] = lambda scene: {}
    """Prepares the scene; what it returns goes into the spec as well."""
    acts: tuple[Act, ...] = ()
    alone: bool = False
    """Other faults wait meanwhile."""
    limit_s: float = LIMIT_S
    """From submission to the decision; after it the run is cancelled and the fault counts as unanswered."""


def once_ready(do: Callable[[Scene], None]) -> Act:
    """Do it when every rank says that it is ready."""

    def act(scene: Scene) -> None:
        scene.await_ready()
        do(scene)

    return Act("AttemptStarted", act)
