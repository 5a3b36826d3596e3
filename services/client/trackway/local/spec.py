"""What a child of the supervisor is, as data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trackway.local.state import StateFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start of a child."""

    log_file: Path
    log_offset: int
    """Where this start's lines begin; the file is appended to."""


BESIDE_TRAINING = 5
"""Niceness of the control plane on the one machine of a local stack: its restarts must not hold up a step."""
Probe = Callable[[Launch], Awaitable[bool]]
"""Tells whether the child answers. Quick, never raises for a child that doesn't."""
Step = Callable[[], Awaitable[None]]
"""Raises TrackwayError when it can't be done; Unavailable when it may work soon. Safe to repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """How to start one child and how to tell that it is ready."""

    name: str
    argv: tuple[str, ...]
    endpoint: str
    answers: Probe
    env: Mapping[str, str] = field(default_factory=dict)
    """What it gets beside the environment that all children share."""
    depends_on: tuple[str, ...] = ()
    """Children that must have been ready once before the first start. Their later deaths are its own to bear."""
    before_start: Step | None = None
    after_answer: Step | None = None
    """Done each time the child begins to answer; only then is it ready."""
    niceness: int = 0
    """CPU priority below the trainers', which share the machine; see BESIDE_TRAINING."""
    stop_grace_s: float = 5.0
    """From SIGTERM to SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What the user chose."""

    cpus: int
    """Rank slots of the local pool: scheduling tokens, since every rank computes with one thread."""
    only: frozenset[str] | None = None
    """Start these children alone; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What specs are made from."""

    folder: StateFolder
    stack_id: str
    ports: Mapping[str, int]
    options: StackOptions

    def address(self, name: str) -> str:
        """host:port of a part."""
        return f"127.0.0.1:{self.ports[name]}"


def selected(specs: Iterable[ChildSpec], only: frozenset[str] | None) -> tuple[ChildSpec, ...]:
    """Return the specs that were asked for, without dependencies on those that were not."""
    kept = [spec for spec in specs if only is None or spec.name in only]
    names = {spec.name for spec in kept}
    return tuple(replace(spec, depends_on=tuple(name for name in spec.depends_on if name in names)) for spec in kept)


def levels(specs: Iterable[ChildSpec]) -> tuple[frozenset[str], ...]:
    """Group names so that each depends only on groups before its own; ends are made in the reverse order."""
    waiting = {spec.name: set(spec.depends_on) for spec in specs}
    order: list[frozenset[str]] = []
    while waiting:
        free = frozenset(name for name, needs in waiting.items() if not needs & waiting.keys())
        assert free, f"dependencies form a circle: {sorted(waiting)}"
        order.append(free)
        waiting = {name: needs for name, needs in waiting.items() if name not in free}
    return tuple(order)
