"""Orders of runs, from the facts of trackway.runs.v1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trackway_common.events import FinalEvaluationOrdered, RunFailed, RunSpec, RunSubmitted, RunSucceeded
from trackway_common.fact_reader import Judged

from trackway_evaluator.domain.order import Order


class RunBook:
    """Folds run facts; keeps a run's inputs until its end."""

    def __init__(self) -> None:
        self._specs: dict[str, RunSpec] = {}
        self._rounds: Counter[tuple[str, str]] = Counter()

    def take(self, judged: Judged) -> tuple[Order, ...]:
        """Orders in a commit of the runs topic; () for one that does not count."""
        kind, _, run_id = judged.commit.stream.partition("/")
        if not judged.accepted or kind != "runs":
            return ()
        return tuple(self._orders(run_id, judged))

    def _orders(self, run_id: str, judged: Judged) -> Iterator[Order]:
        for fact in judged.commit.facts:
            match fact:
                case RunSubmitted():
                    self._specs[run_id] = fact.spec
                case RunSucceeded() | RunFailed():
                    self._specs.pop(run_id, None)
                case FinalEvaluationOrdered():
                    yield self._order(run_id, fact, judged)
                case _:
                    pass

    def _order(self, run_id: str, fact: FinalEvaluationOrdered, judged: Judged) -> Order:
        self._rounds[run_id, fact.evaluation_id] += 1
        return Order(
            run_id=run_id,
            order_id=judged.commit.commit_id,
            evaluation_id=fact.evaluation_id,
            round=self._rounds[run_id, fact.evaluation_id],
            pack=fact.pack,
            checkpoint=fact.checkpoint,
            ordered_at=fact.ordered_at,
            spec=self._specs[run_id],
            traceparent=judged.commit.traceparent,
        )
