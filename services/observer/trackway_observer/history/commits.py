"""Commits of one run, put together again from the rows of ``events`` and ``ownership_claims``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from trackway_common.codec import decode_fact
from trackway_common.commit import Commit, Term
from trackway_common.events import OwnershipClaimed

EVENTS_OF_RUN = """
select
  stream, commit_id, sequence, epoch, claim, writer_id, command_id, causation_id, correlation_id, tenant, actor,
  occurred_at, traceparent, hex(payload), appended_at
from events
where run_id = {run:String}
order by stream, sequence
"""
"""A text column would not survive as bytes, hence hex."""
CLAIMS_OF_RUN = """
select scope, epoch, claim, writer_id, endpoint, occurred_at, appended_at
from ownership_claims
where scope = {evaluations:String} or startsWith(scope, {attempts:String})
order by scope, epoch, claim
"""

Row = Sequence[Any]


def claims_parameters(run_id: str) -> dict[str, str]:
    """Scopes that belong to one run; its partition of the runs topic is everybody's."""
    return {"evaluations": f"evaluations/{run_id}", "attempts": f"attempts/{run_id}/"}


def commits_of(events: Iterable[Row], claims: Iterable[Row]) -> tuple[Commit, ...]:
    """Rows of ``EVENTS_OF_RUN`` and ``CLAIMS_OF_RUN`` as the commits that they were, in the order of their appending.

    Raises:
        CorruptRecord: a payload is no fact.
    """
    appended: list[tuple[datetime, Commit]] = [(row[6], _claim(row)) for row in claims]
    latest: dict[str, datetime] = {}
    for _, group in groupby(events, key=lambda row: (row[0], row[1])):
        rows = list(group)
        # The broker's time may stand still or step back; the order inside a stream is by sequence alone.
        at = max(rows[0][14], latest.get(rows[0][0], rows[0][14]))
        latest[rows[0][0]] = at
        appended.append((at, _commit(rows[0], rows)))
    return tuple(commit for _, commit in sorted(appended, key=itemgetter(0)))


def _claim(row: Row) -> Commit:
    scope, epoch, claim, writer_id, endpoint, occurred_at, _ = row
    return Commit(
        commit_id=f"{scope}@{epoch}.{claim}",
        stream=scope,
        first_seq=0,
        term=Term(epoch, claim),
        writer_id=writer_id,
        command_id="",
        causation_id="",
        correlation_id="",
        tenant="",
        actor=writer_id,
        occurred_at=occurred_at,
        traceparent="",
        facts=(OwnershipClaimed(endpoint=endpoint),),
    )


def _commit(first: Row, rows: Sequence[Row]) -> Commit:
    return Commit(
        stream=first[0],
        commit_id=first[1],
        first_seq=first[2],
        term=Term(first[3], first[4]),
        writer_id=first[5],
        command_id=first[6],
        causation_id=first[7],
        correlation_id=first[8],
        tenant=first[9],
        actor=first[10],
        occurred_at=first[11],
        traceparent=first[12],
        facts=tuple(decode_fact(bytes.fromhex(row[13])) for row in rows),
    )
