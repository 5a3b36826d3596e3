"""Acceptance state as rows: what each range changed, and what stood there before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trackway_common.acceptance import NO_TERM, Acceptance, Accepted, Claimed
from trackway_common.commit import Term
from trackway_common.fact_reader import Judged

from trackway_observer.projection.columns import TableColumns

HEAD, TERM = "head", "term"
_NAMES = (
    "projector",
    "generation",
    "topic",
    "kafka_partition",
    "kind",
    "name",
    "head",
    "head_before",
    "epoch",
    "epoch_before",
    "claim",
    "claim_before",
    "range_last",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRow:
    """A stream's head or a scope's term, after and before the range that changed it last."""

    kafka_partition: int
    kind: str
    name: str
    head: int = 0
    head_before: int = 0
    term: Term = NO_TERM
    term_before: Term = NO_TERM
    range_last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Acceptance state of what a range touches, taken before the range was judged."""

    heads: Mapping[str, int]
    terms: Mapping[str, Term]


def head_rows(judged: Sequence[Judged], before: Before, range_last: int) -> tuple[HeadRow, ...]:
    """What a range of one partition changed."""
    heads = {j.commit.stream: j.commit.last_seq for j in judged if isinstance(j.verdict, Accepted)}
    terms = {j.verdict.scope: j.commit.term for j in judged if isinstance(j.verdict, Claimed)}
    if not judged:
        return ()
    partition = judged[0].record.partition
    rows = [
        HeadRow(
            kafka_partition=partition,
            kind=HEAD,
            name=stream,
            head=head,
            head_before=before.heads[stream],
            range_last=range_last,
        )
        for stream, head in heads.items()
    ]
    rows += [
        HeadRow(
            kafka_partition=partition,
            kind=TERM,
            name=scope,
            term=term,
            term_before=before.terms[scope],
            range_last=range_last,
        )
        for scope, term in terms.items()
    ]
    return tuple(rows)


def acceptance_from(topic: str, rows: Iterable[HeadRow], positions: Mapping[int, int]) -> Acceptance:
    """Acceptance state before the positions: of a range that is not DONE, what stood there before it."""
    heads: dict[str, int] = {}
    terms: dict[str, Term] = {}
    for row in rows:
        is_done = row.range_last < positions.get(row.kafka_partition, 0)
        if row.kind == HEAD:
            heads[row.name] = row.head if is_done else row.head_before
        else:
            terms[row.name] = row.term if is_done else row.term_before
    return Acceptance(topic, terms=terms, heads=heads)


def head_columns(projector: str, generation: int, topic: str, rows: Sequence[HeadRow]) -> TableColumns:
    """Rows of ``stream_heads``."""
    values = [
        (
            projector,
            generation,
            topic,
            row.kafka_partition,
            row.kind,
            row.name,
            row.head,
            row.head_before,
            row.term.epoch,
            row.term_before.epoch,
            row.term.claim,
            row.term_before.claim,
            row.range_last,
        )
        for row in rows
    ]
    return TableColumns(table="stream_heads", names=_NAMES, data=tuple(zip(*values, strict=True)))
