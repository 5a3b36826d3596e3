"""What the agent and its Ray driver say to each other: length-prefixed pickles over a socket pair.

Pickle, because both ends are the same code on one machine, and nobody else can reach the socket.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from dataclasses import dataclass
from typing import TypeAlias

from trackway_trainer_agent.gangs import GangName, GangRequest
from trackway_trainer_agent.worker.rank_spec import RankSpec

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCluster:
    """``Gangs.cluster``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGangs:
    """``Gangs.existing``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGang:
    """``Gangs.create``."""

    request: GangRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewRank:
    """``Gangs.renew``."""

    gang: GangName
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRank:
    """``Gangs.start``."""

    gang: GangName
    rank: int
    spec: RankSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRank:
    """``Gangs.drain``."""

    gang: GangName
    rank: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStacks:
    """``Gangs.stacks``."""

    gang: GangName
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRank:
    """``Gangs.stop``."""

    gang: GangName
    rank: int
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KillRank:
    """``Gangs.kill``."""

    gang: GangName
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGang:
    """``Gangs.remove``."""

    gang: GangName


Order: TypeAlias = (
    ViewCluster
    | ListGangs
    | CreateGang
    | RenewRank
    | StartRank
    | DrainRank
    | ShowStacks
    | StopRank
    | KillRank
    | RemoveGang
)


@dataclass(frozen=True, slots=True)
class Call:
    """Agent: do this."""

    number: int
    order: Order


@dataclass(frozen=True, slots=True)
class Answer:
    """Driver: what came of a call."""

    number: int
    result: object
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Connected:
    """Driver: the cluster answers; first message."""


Frame: TypeAlias = Call | Answer | Connected


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None when the other end is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    frame: Frame = pickle.loads(body)  # noqa: S301 - see the module's docstring
    return frame


def write_frame(writer: asyncio.StreamWriter, frame: Frame) -> None:
    """Queue a frame."""
    body = pickle.dumps(frame)
    writer.write(_LENGTH.pack(len(body)) + body)
