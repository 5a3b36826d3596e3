"""Everything a user can get wrong: the field is named, the exit code is 2, only a refusal is appended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from trackway_common.events import RunRefused
from trackway_common.fact_reader import Judged
from trackway_common.ids import uuid7

from tests.support.facts import accepted_commits, records
from tests.support.runs import spec
from tests.support.stack import Answer, Stack
from tests.support.wrong_commands import NAMES, Case, every_case


@dataclass(frozen=True)
class Told:
    """What each wrong command was answered, and what the fact topics held before and after all of them."""

    cases: dict[str, Case]
    answers: dict[str, Answer]
    before: list[Judged]
    after: list[Judged]


@pytest.fixture(scope="module")
def told(stack: Stack, numbers: Path, tmp_path_factory) -> Told:
    cases = every_case(tmp_path_factory.mktemp("wrong"))
    before = records(stack.kafka)
    answers = {name: stack.cli(*case.command) for name, case in cases.items()}
    return Told(cases, answers, before, records(stack.kafka))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_is_named(told, name):
    answer = told.answers[name]
    printed = answer.out + answer.err
    assert answer.code == 2, (answer.code, printed)
    assert printed
    assert [word for word in told.cases[name].says if word not in printed] == [], printed


def test_all_of_them_append_their_refusals_and_nothing_else(stack, told):
    submitted = {case.request_id for case in told.cases.values() if case.request_id}
    refusals = [
        commit
        for commit in accepted_commits(stack.kafka)
        for fact in commit.facts
        if isinstance(fact, RunRefused) and fact.run_id in submitted
    ]
    assert Counter(commit.stream for commit in refusals) == {f"runs/{run_id}": 1 for run_id in submitted}
    assert [commit for commit in refusals if len(commit.facts) > 1] == []
    # Refused commits count too. Pools are watched and old checkpoints freed whatever is asked.
    old = {place(judged) for judged in told.before}
    new = [judged.commit.stream for judged in told.after if place(judged) not in old]
    asked_for = [stream for stream in new if not stream.startswith(("pools/", "checkpoints/"))]
    assert sorted(asked_for) == sorted(f"runs/{run_id}" for run_id in submitted)
    assert [stream for stream in new if stream in {f"checkpoints/{run_id}" for run_id in submitted}] == []


def place(judged: Judged) -> tuple[str, int, int]:
    """Where a record lies."""
    return judged.record.topic, judged.record.partition, judged.record.offset


def refused(stack, *arguments: str) -> str:
    """What a refused command prints."""
    answer = stack.cli(*arguments)
    assert answer.code == 2, (answer.code, answer.out, answer.err)
    return answer.out + answer.err


def test_validate_only_appends_nothing(stack, numbers, tmp_path):
    request_id = uuid7()
    command = ("train", "submit", "--config", str(spec(tmp_path)), "--request-id", request_id, "--validate-only")
    assert stack.cli(*command).code == 0
    assert [c for c in accepted_commits(stack.kafka) if request_id in c.stream] == []


def test_the_same_request_twice_is_one_run_and_another_body_is_refused(stack, numbers, tmp_path):
    request_id = uuid7()
    config = spec(tmp_path, hyperparameters={"steps": 1})
    command = ("train", "submit", "--config", str(config), "--request-id", request_id, "-o", "json")
    first, second = stack.cli(*command), stack.cli(*command)
    assert (first.code, second.code) == (0, 0), second.err
    submitted = [
        fact
        for c in accepted_commits(stack.kafka)
        if c.stream == f"runs/{request_id}"
        for fact in c.facts
        if type(fact).__name__ == "RunSubmitted"
    ]
    assert len(submitted) == 1
    other = spec(tmp_path, hyperparameters={"steps": 2})
    assert "request_id" in refused(stack, "train", "submit", "--config", str(other), "--request-id", request_id)


def test_a_service_that_is_away_is_exit_3(stack):
    answer = stack.cli("train", "list", "--endpoint", "127.0.0.1:9")
    assert answer.code == 3
    assert "127.0.0.1:9" in answer.out + answer.err
