"""What all rows share."""

from __future__ import annotations

from dataclasses import Field, dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol


class Row(Protocol):
    """One row of a state table: a dataclass."""

    TABLE: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # as the standard library types every dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a record stands in the log."""

    topic: str
    partition: int
    offset: int
    appended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a fact stands in its stream."""

    stream: str
    sequence: int
    """Version of the rows made of it: a later fact of the stream replaces an earlier one."""
    occurred_at: datetime
    actor: str
    traceparent: str

    @property
    def root(self) -> str:
        """The run's id; only for streams of a run."""
        return self.stream.split("/", 2)[1]
