"""A commit's facts as moments of its run's common timeline."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from trackway_common.codec import fact_name
from trackway_common.commit import Commit, UnknownFact
from trackway_common.events import Fact
from trackway_common.history.model import Moment
from trackway_common.history.parts import attempt_number
from trackway_common.history.summaries import summary_of, time_of


def moments_of(commit: Commit) -> tuple[Moment, ...]:
    """One moment per fact, in the commit's order."""
    return tuple(
        Moment(
            at=time_of(fact) or commit.occurred_at,
            stream=commit.stream,
            sequence=commit.first_seq + i if commit.first_seq else 0,
            fact=fact_name(fact),
            attempt=attempt_of(commit.stream, fact),
            text=summary_of(fact),
        )
        for i, fact in enumerate(commit.facts)
    )


def attempt_of(stream: str, fact: Fact | UnknownFact) -> int | None:
    """Attempt that a fact concerns: from its stream, its own field or its epoch; None for the whole run."""
    if (number := attempt_number(stream)) is not None:
        return number
    number = getattr(fact, "attempt", None)
    return number if isinstance(number, int) and number > 0 else None


def in_order(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """Order moments for reading: by time between streams, by sequence within one, whatever its clock said."""
    latest: dict[str, datetime] = {}
    keyed: list[tuple[datetime, Moment]] = []
    for moment in moments:
        key = max(moment.at, latest.get(moment.stream, moment.at))
        latest[moment.stream] = key
        keyed.append((key, moment))
    return tuple(moment for _, moment in sorted(keyed, key=lambda pair: pair[0]))
