"""The envelopes of the log: what one Kafka record says besides its facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import Fact, RequestBody


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """Fencing number of a scope; compared epoch first, then claim."""

    epoch: int
    claim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownFact:
    """A fact of a newer schema, kept as it came. Readers count it; a decider halts on it."""

    number: int
    """Field number of the oneof member; 0 when the event names none."""
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """All facts of one stream that were decided together: one Kafka record."""

    commit_id: str
    stream: str
    first_seq: int
    """Sequence of the first fact, ≥ 1; 0 in an ownership claim, which uses no sequence number."""
    term: Term
    writer_id: str
    command_id: str
    causation_id: str
    correlation_id: str
    tenant: str
    actor: str
    occurred_at: datetime
    traceparent: str
    facts: tuple[Fact | UnknownFact, ...]

    @property
    def last_seq(self) -> int:
        """Sequence of the last fact."""
        return self.first_seq + len(self.facts) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Who asks for a command, under which id, and what it belongs to."""

    command_id: str
    actor: str
    causation_id: str = ""
    correlation_id: str = ""
    traceparent: str = ""
    tenant: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One record of the commands topic."""

    request_id: str
    sender: str
    sent_at: datetime
    traceparent: str
    body: RequestBody
