"""The acceptance rule: which commits count. Pure, and computed the same by every reader.

``term = (epoch, claim)``. A claim counts iff its term is greater than its scope's. Any other commit counts
iff its term equals the scope's and it continues its stream without a gap. Checkpoint streams have no owner:
they mirror a commit log whose slots are unique, so a lower slot again is a duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from trackway_common import topics
from trackway_common.commit import Commit, Term
from trackway_common.events import OwnershipClaimed

NO_TERM = Term(0, 0)
"""Term of a scope that nobody has claimed; no commit can carry it, because claims begin at 1."""


class Ownership(Enum):
    """What a claim covers."""

    PARTITION = "partition"
    STREAM = "stream"
    NOBODY = "nobody"


OWNERSHIP = {
    topics.RUNS: Ownership.PARTITION,
    topics.ATTEMPTS: Ownership.STREAM,
    topics.EVALUATIONS: Ownership.STREAM,
    topics.CHECKPOINTS: Ownership.NOBODY,
}


@dataclass(frozen=True, slots=True)
class Accepted:
    """The commit's facts happened."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The scope has a new owner."""

    scope: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same facts again; nothing to do."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The record stays as evidence and is never applied."""

    reason: str


Verdict: TypeAlias = "Accepted | Claimed | Duplicate | Rejected"


def partition_scope(partition: int) -> str:
    """Name of the scope that covers a partition."""
    return f"partitions/{partition}"


class Acceptance:
    """Folds the records of one topic, in order within a partition, into verdicts."""

    def __init__(
        self, topic: str, *, terms: Mapping[str, Term] | None = None, heads: Mapping[str, int] | None = None
    ) -> None:
        self._ownership = OWNERSHIP[topic]
        self._terms = dict(terms or {})
        self._heads = dict(heads or {})

    def judge(self, partition: int, commit: Commit) -> Verdict:
        """Return the verdict on the next record of a partition, and remember what it changes."""
        if any(isinstance(fact, OwnershipClaimed) for fact in commit.facts):
            return self._judge_claim(partition, commit)
        if self._ownership is Ownership.NOBODY:
            return self._judge_slot(commit)
        return self._judge_commit(partition, commit)

    def term(self, scope: str) -> Term:
        """Term that the scope is owned under."""
        return self._terms.get(scope, NO_TERM)

    def head(self, stream: str) -> int:
        """Sequence of the stream's last accepted fact; 0 before the first."""
        return self._heads.get(stream, 0)

    def scope_of(self, partition: int, stream: str) -> str:
        """Scope that a commit of this stream is judged under."""
        return partition_scope(partition) if self._ownership is Ownership.PARTITION else stream

    def _judge_claim(self, partition: int, commit: Commit) -> Verdict:
        scope = self.scope_of(partition, commit.stream)
        if self._ownership is Ownership.NOBODY:
            return Rejected("this topic has no owners")
        if len(commit.facts) != 1 or commit.first_seq != 0 or commit.stream != scope:
            return Rejected("malformed claim")
        if commit.term <= self.term(scope):
            return Rejected(f"claim {_show(commit.term)} is not above {_show(self.term(scope))}")
        self._terms[scope] = commit.term
        return Claimed(scope)

    def _judge_commit(self, partition: int, commit: Commit) -> Verdict:
        owned = self.term(self.scope_of(partition, commit.stream))
        if commit.term != owned or owned == NO_TERM:
            return Rejected(f"term {_show(commit.term)} is not the owner's {_show(owned)}")
        expected = self.head(commit.stream) + 1
        if commit.first_seq != expected:
            return Rejected(f"sequence {commit.first_seq} where {expected} is next")
        self._heads[commit.stream] = commit.last_seq
        return Accepted()

    def _judge_slot(self, commit: Commit) -> Verdict:
        expected = self.head(commit.stream) + 1
        if commit.first_seq < expected:
            return Duplicate()
        if commit.first_seq > expected:
            return Rejected(f"slot {commit.first_seq} where {expected} is next")
        self._heads[commit.stream] = commit.last_seq
        return Accepted()


def _show(term: Term) -> str:
    return f"{term.epoch}.{term.claim}"
