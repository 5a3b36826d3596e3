"""What happened to the demo's run, and how a claim about it is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from trackway import TrackwayClient
from trackway.client.resources import Attempt, Evaluation, RunFact
from trackway_common.errors import TrackwayError
from trackway_common.events import EvaluationCompleted
from trackway_common.ids import attempt_stream

T = TypeVar("T")


class Untrue(Exception):
    """A claim does not hold."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happened, as the services told it."""

    client: TrackwayClient
    run_id: str
    facts: Sequence[RunFact]
    killed_after: int
    """Facts that were told before the kill; 0 when nobody was killed."""


Claim = Callable[[Story], object]
Claims = tuple[tuple[str, Claim], ...]


def check(claims: Claims, story: Story) -> list[str]:
    """Print each claim with its verdict and what was seen; return those that are false."""
    failed = []
    for text, claim in claims:
        try:
            print(f"  ✔ {text}  [{claim(story)}]", flush=True)
        except (Untrue, TrackwayError) as error:
            print(f"  ✘ {text}  [{error}]", flush=True)
            failed.append(f"{text}: {error}")
    return failed


def untrue(seen: object) -> NoReturn:
    """Say what was seen instead."""
    raise Untrue(str(seen))


def named(facts: Iterable[RunFact], name: str) -> list[Mapping[str, Any]]:
    """Fields of every fact of a name, in order."""
    return [fact.fields for fact in facts if fact.fact == name]


def first(facts: Iterable[RunFact], name: str) -> Mapping[str, Any]:
    """Fields of the first fact of a name."""
    return last_of(named(facts, name)[:1], name)


def of_attempt(story: Story, number: int, name: str) -> Mapping[str, Any]:
    """Fields of an attempt's fact of a name."""
    stream = attempt_stream(story.run_id, number)
    return last_of(named((fact for fact in story.facts if fact.stream == stream), name), f"{name} of attempt {number}")


def attempt(story: Story, number: int) -> Attempt:
    """The receipt of an attempt."""
    return story.client.attempt(f"{story.run_id}/{number}")


def evaluation(story: Story) -> Evaluation:
    """The run's evaluation."""
    return last_of(list(story.client.evaluations(story.run_id)), "evaluation of the run")


def result(story: Story) -> EvaluationCompleted:
    """What the run's evaluation found."""
    return evaluation(story).result or untrue("the evaluation has no result")


def last_of(found: Sequence[T], what: str) -> T:
    """The last one found; without one the claim that needs it is false."""
    return found[-1] if found else untrue(f"there is no {what}")
