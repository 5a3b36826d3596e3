"""The demo's claims hold for the story that it tells; without that story each is false, with a sentence."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from trackway.client.resources import RunFact
from trackway_common.codec import fact_fields, fact_name
from trackway_common.errors import Unavailable
from trackway_common.events import CheckpointCommitted, RunPhase
from trackway_common.testing.run_stories import killed_and_resumed

DEMO = Path(__file__).parents[3] / "examples/demo"


@pytest.fixture(autouse=True)
def demo(monkeypatch):
    """The demo's modules can be imported as the demo imports them, and are forgotten again."""
    monkeypatch.syspath_prepend(str(DEMO))
    yield
    for name in ("claims", "story"):
        sys.modules.pop(name, None)


class Nobody:
    """A client of services that are all away."""

    def __getattr__(self, name):
        def call(*arguments, **named):
            raise Unavailable("nobody answers")

        return call


def told() -> list[RunFact]:
    """The facts of a run whose rank 1 was killed, as a watch yields them."""
    return [
        RunFact(
            cursor="",
            fact=fact_name(fact),
            stream=commit.stream,
            sequence=commit.first_seq + index,
            occurred_at=commit.occurred_at,
            fields=fact_fields(fact),
            phase=RunPhase.RUNNING,
            summary=fact_name(fact),
        )
        for commit in killed_and_resumed().facts_only
        for index, fact in enumerate(commit.facts)
    ]


def story_of(facts: list[RunFact], killed_after: int):
    from story import Story

    return Story(client=Nobody(), run_id=killed_and_resumed().run_id, facts=facts, killed_after=killed_after)


def after_the_first_attempts_commits(facts: list[RunFact]) -> int:
    """How many facts had been told when its last checkpoint was committed."""
    ended = next(index for index, fact in enumerate(facts) if fact.fact == "AttemptEnded")
    return 1 + max(i for i, fact in enumerate(facts[:ended]) if fact.fact == CheckpointCommitted.__name__)


def test_what_the_log_says_is_true_of_a_killed_and_resumed_run(capsys):
    from claims import LOG
    from story import check

    facts = told()
    assert check(LOG, story_of(facts, after_the_first_attempts_commits(facts))) == []
    assert "[step 40]" in capsys.readouterr().out


def test_a_resume_at_an_older_commit_makes_one_claim_false():
    from claims import LOG
    from story import check

    facts = told()
    older = next(fact.fields["checkpoint"] for fact in facts if fact.fact == "CheckpointCommitted")
    changed = [
        replace(fact, fields={**fact.fields, "checkpoint": older})
        if fact.fact == "ResumeTargetChosen" and fact.fields["checkpoint"]
        else fact
        for fact in facts
    ]
    failed = check(LOG, story_of(changed, after_the_first_attempts_commits(facts)))
    assert failed[0].endswith("step 20, but the last commit is of step 40")


def test_without_facts_and_services_every_claim_is_false_with_a_sentence():
    from claims import LOG, SERVICES, SQL, explanation
    from story import check

    every = (*LOG, *SERVICES, *SQL, *explanation(""))
    failed = check(every, story_of([], 0))
    assert [text for text, _ in every] == [claim.partition(": ")[0] for claim in failed]
