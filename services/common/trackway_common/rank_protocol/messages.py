"""The messages, version 1. The SDK speaks first and says which version it speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """SDK: first message of a connection; answered by ``Accepted`` or ``Refused``."""

    version: int
    pid: int
    dumps_stacks: bool
    """SIGUSR2 makes this process write its stacks to ``$TRACKWAY_STACKS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """SDK: values of a finished step; not answered."""

    step: int
    values: Mapping[str, float]
    at_ms: int
    phases: Mapping[str, float] = field(default_factory=dict)
    """Members of ``Phases`` when the step was finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequested:
    """SDK: wants staging memory of at least this size; answered by ``Staging`` with its descriptor."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """Actor: the rank's one staging memory; it grows and never shrinks."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveStateAsked:
    """SDK: is a save in flight? Answered by ``SaveState``, once there is none if ``wait`` is set."""

    wait: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveState:
    """Actor: whether the staging memory is still being read."""

    in_flight: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """SDK: the staging memory holds this rank's part of a checkpoint; answered by ``Accepted`` or ``Refused``."""

    step: int
    nonce: str
    size_bytes: int
    """Bytes of the staging memory, from 0, that are the shard: safetensors layout."""
    items: int
    """Tensors that were planned; as many must be found in the shard."""
    cursor_seed: str | None
    """Decimal; absent: the program keeps no data cursor, and the next two say nothing."""
    data_epoch: int
    samples_consumed: int
    """By all ranks together since the run began."""
    blocked_seconds: float
    metrics: Mapping[str, float]
    phases: Mapping[str, float] = field(default_factory=dict)
    """Members of ``Phases`` when the copy was done."""
    at_ms: int = 0
    """When that was, by the node's wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Actor: yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Actor: no."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A message of a later version; a receiver that needs no answer to it goes on."""

    kind: str
    body: Mapping[str, object] = field(default_factory=dict)


Message: TypeAlias = (
    Hello | Report | StageRequested | Staging | SaveStateAsked | SaveState | Captured | Accepted | Refused | Unknown
)
_KINDS: dict[str, type[Message]] = {
    kind.__name__: kind
    for kind in (Hello, Report, StageRequested, Staging, SaveStateAsked, SaveState, Captured, Accepted, Refused)
}


def encode(message: Message) -> bytes:
    """One JSON object; NaN and infinities of metrics are kept in Python's spelling."""
    return json.dumps({"kind": type(message).__name__, **asdict(message)}).encode()


def decode(body: bytes) -> Message:
    """The message in the bytes; ``Unknown`` for a kind of a later version.

    Raises:
        ValueError: no JSON object with a kind, or fields that the kind does not have.
    """
    members = json.loads(body)
    if not isinstance(members, dict) or not isinstance(members.get("kind"), str):
        raise ValueError("a message is a JSON object with a kind")
    kind = members.pop("kind")
    if kind not in _KINDS:
        return Unknown(kind=kind, body=members)
    try:
        return _KINDS[kind](**members)
    except TypeError as error:
        raise ValueError(f"{kind}: {error}") from error
