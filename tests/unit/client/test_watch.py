"""A watch over connections that break at any place, with a service that may repeat itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway.client.calls import CutOff, OutOfTime
from trackway.client.patience import Patience
from trackway.client.resources import RunFact
from trackway.client.watch import watch
from trackway_common.errors import Fenced, NotFound, TrackwayError, Unavailable
from trackway_common.events import RunPhase

STREAMS = ("runs/r", "attempts/r/1", "checkpoints/r")


def _history(length: int) -> list[RunFact]:
    """Facts over several streams, in the service's order; the last one ends the run."""
    counts = dict.fromkeys(STREAMS, 0)
    facts = []
    for position in range(1, length + 1):
        stream = STREAMS[position % 3]
        counts[stream] += 1
        facts.append(
            RunFact(
                cursor=str(position),
                fact="Fact",
                stream=stream,
                sequence=counts[stream],
                occurred_at=None,
                fields={},
                phase=RunPhase.SUCCEEDED if position == length else RunPhase.RUNNING,
                summary="",
            )
        )
    return facts


@dataclass
class _Service:
    """Breaks connections as told, and starts some facts before the cursor, as a careless service would."""

    facts: list[RunFact]
    breaks: list[tuple[int, TrackwayError | None, int]]
    """Per connection: facts it sends, how it ends (None: cleanly), facts that it repeats first."""
    opened: int = 0
    ended_asked: int = 0
    cursors: list[str] = field(default_factory=list)

    def segment(self, cursor: str) -> Iterator[RunFact]:
        self.cursors.append(cursor)
        start = int(cursor or 0)
        if self.opened >= len(self.breaks):
            yield from self.facts[start:]
            return
        count, error, repeated = self.breaks[self.opened]
        self.opened += 1
        start = max(0, start - repeated)
        yield from self.facts[start : start + count]
        if error:
            raise error

    def has_ended(self) -> bool:
        self.ended_asked += 1
        return False


class _Time:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def patience(self, outage_s: float = 120.0) -> Patience:
        return Patience(outage_s, self.sleep, lambda: self.now_s)


ENDS = st.sampled_from([None, Unavailable("gone"), Fenced("moved"), CutOff("stopped"), OutOfTime("quiet")])


@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 12), ENDS, st.integers(0, 5)), max_size=15))
def test_every_fact_comes_once_and_in_order(length: int, breaks: list[tuple[int, TrackwayError | None, int]]) -> None:
    service = _Service(_history(length), breaks)
    seen = list(watch(service.segment, service.has_ended, _Time().patience()))
    assert seen == service.facts


def test_it_goes_on_behind_the_given_cursor() -> None:
    service = _Service(_history(9), [])
    assert list(watch(service.segment, service.has_ended, _Time().patience(), "4")) == service.facts[4:]


def test_a_run_that_ended_before_the_cursor_ends_the_watch() -> None:
    service = _Service(_history(3), [])
    assert list(watch(service.segment, lambda: True, _Time().patience(), "3")) == []


def test_an_outage_that_outlasts_the_patience_is_told() -> None:
    refused = (0, Unavailable("refused"), 0)
    service, time = _Service(_history(5), [(2, Unavailable("gone"), 0), *[refused] * 99]), _Time()
    facts = watch(service.segment, service.has_ended, time.patience(outage_s=30))
    assert [next(facts), next(facts)] == service.facts[:2]
    with pytest.raises(Unavailable, match=r"gave up after \d+ s: refused"):
        next(facts)
    assert 30 <= time.now_s <= 34


def test_a_quiet_run_is_watched_for_ever() -> None:
    service = _Service(_history(2), [(0, OutOfTime("60 s"), 0)] * 500)
    assert len(list(watch(service.segment, service.has_ended, _Time().patience(outage_s=5)))) == 2
    assert service.ended_asked == 500


def test_a_refusal_is_not_waited_out() -> None:
    service = _Service(_history(2), [(1, NotFound("no such run"), 0)])
    with pytest.raises(NotFound):
        list(watch(service.segment, service.has_ended, _Time().patience()))
