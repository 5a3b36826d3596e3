"""Explanations: what a reader is told, for every kind of run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from trackway_common.codec import fact_fields, fill_message, from_message
from trackway_common.commit import Term
from trackway_common.errors import NotFound
from trackway_common.events import Authority, CausalRole, Evidence
from trackway_common.history.explain import Explanation, Surroundings, as_markdown, as_postmortem, as_text, explain
from trackway_common.history.explain.text import WIDTH
from trackway_common.history.fold import fold_run
from trackway_common.ids import attempt_stream
from trackway_common.testing.run_facts import RUN_ID, RunFacts
from trackway_common.testing.run_steps import ended, placed, started, submitted
from trackway_common.testing.run_stories import cancelled_in_queue, killed, killed_and_resumed, refused, user_error
from trackway_common.testing.run_troubles import held_after_evaluation, script_started_over, written_off
from trackway_proto.v1.explanation_pb2 import ExplanationParts

from tests.support.command_lines import parse_command

GOLDEN = Path(__file__).parent / "killed_and_resumed.txt"
STORIES = (
    killed_and_resumed,
    user_error,
    refused,
    cancelled_in_queue,
    script_started_over,
    written_off,
    held_after_evaluation,
)


def told(facts: RunFacts, attempt: int | None = None, **around: object) -> Explanation:
    surroundings = Surroundings(**around)  # type: ignore[arg-type]  # the test's own keywords
    return explain(fold_run(RUN_ID, facts.facts_only), attempt, as_of=facts.now, surroundings=surroundings)


def test_the_demo_reads_as_agreed() -> None:
    assert as_text(told(killed_and_resumed(), 1)) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("story", STORIES)
def test_every_story_has_all_three_forms(story: Callable[[], RunFacts]) -> None:
    explanation = told(story())
    prose = [line for line in as_text(explanation).splitlines() if "  trackway " not in line]
    assert all(len(line) <= WIDTH for line in prose)
    assert as_markdown(explanation).startswith(f"# {explanation.verdict.headline.replace('_', chr(92) + '_')}")
    assert json.loads(json.dumps(fact_fields(explanation)))["run_id"] == RUN_ID
    assert as_postmortem(explanation).startswith("# Incident: ")


@pytest.mark.parametrize("story", STORIES)
def test_every_story_travels_typed_and_comes_back_the_same(story: Callable[[], RunFacts]) -> None:
    explanation = told(story())
    message = fill_message(ExplanationParts(), explanation)
    assert from_message(ExplanationParts.FromString(message.SerializeToString()), Explanation) == explanation


def test_an_incident_report_is_filled_in_and_leaves_owners_to_people() -> None:
    report = as_postmortem(told(killed_and_resumed(), 1))
    for chapter in (
        "Summary",
        "Impact",
        "Timeline (UTC)",
        "Root cause",
        "What went well",
        "What did not",
        "Action items",
    ):
        assert f"\n## {chapter}\n" in report
    assert "17 steps after step 40" in report
    assert "**from its end to the next placement** 30.1 s" in report
    assert "Step 40 was committed" in report
    assert "| Follow docs/runbooks/unknown\\_kill.md | \\_\\_\\_\\_\\_\\_ |" in report


def test_the_same_root_in_another_attempt_is_noted() -> None:
    facts = started(placed(killed(RunFacts()), 2, queue_s=30.0), 2)
    explanation = told(ended(facts.after(1.0), 2), 2)
    assert explanation.evidence is not None
    assert explanation.evidence.notes == ("Attempt 1 of this run ended with the same root (unknown-kill/sigkill).",)
    assert "Attempt 1 of this run ended with the same root" in as_text(explanation)


def test_retry_is_followed_to_where_the_run_went() -> None:
    verdict = told(killed_and_resumed(), 1).verdict
    assert (verdict.headline, verdict.domain, verdict.confidence) == ("UNKNOWN_KILL", "UNKNOWN", 0.9)
    assert "resumed at step 40 and ended with COMPLETED" in verdict.outcome
    assert "SUCCEEDED after 2 attempts" in verdict.outcome


def test_a_run_is_explained_by_its_newest_attempt() -> None:
    explanation = told(killed_and_resumed())
    assert explanation.attempt == 2
    assert [line.attempt for line in explanation.attempts] == [1, 2]
    assert explanation.evaluations[0].state == "PASSED"


def test_same_error_on_many_ranks_is_one_line_and_the_traceback_is_quoted() -> None:
    explanation = told(user_error())
    assert explanation.evidence is not None
    (seen,) = explanation.evidence.supporting
    assert seen.ranks == (0, 1)
    assert "│   /code/bytes_lm/train.py:41 in make_optimizer" in as_text(explanation)
    assert "Not retried" in explanation.verdict.outcome


def test_cascades_are_collapsed_and_never_support_the_reason() -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    cascade = [
        Evidence(
            source=f"rank {rank} error file",
            authority=Authority.ERROR_FILE,
            role=CausalRole.CASCADE,
            excerpt=f"Connection reset by peer [10.0.0.{rank}]:29500",
            rank=rank,
        )
        for rank in range(1, 64)
    ]
    root = Evidence(source="rank 0 exit status", authority=Authority.EXIT_STATUS, role=CausalRole.INITIATING, rank=0)
    section = told(ended(facts, 1, evidence=(root, *cascade))).evidence
    assert section is not None
    assert [o.source for o in section.supporting] == ["rank 0 exit status"]
    assert [(c.count, len(c.ranks)) for c in section.cascades] == [(63, 63)]


def test_script_that_never_saved_is_said_to_have_begun_again() -> None:
    explanation = told(script_started_over(), 1)
    assert explanation.checkpoints is not None
    assert any("attempt 2 began again at step 0" in note for note in explanation.checkpoints.notes)
    assert "began again at step 0" in explanation.verdict.outcome


def test_refused_run_names_each_field() -> None:
    explanation = told(refused())
    assert [v.field for v in explanation.violations] == ["topology.world_size", "datasets[0]"]
    assert "datasets[0]: no dataset named 'stdlb'" in as_text(explanation)


def test_queued_run_tells_its_position_and_who_holds_the_pool() -> None:
    explanation = told(submitted(RunFacts()), ahead=2, holders=("0199…/1",))
    assert explanation.waiting is not None
    assert explanation.waiting.token == "WaitingForTurn"
    assert "3 in the queue of its pool" in as_text(explanation)
    assert explanation.waiting.holders == ("0199…/1",)
    assert "0199…/1" in as_text(explanation)


def test_backoff_is_waited_for_until_it_is_over() -> None:
    facts = killed(RunFacts())
    waiting = told(facts).waiting
    assert waiting is not None
    assert waiting.token == "WaitingForBackoff"
    facts.now += timedelta(seconds=31)
    later = told(facts).waiting
    assert later is not None
    assert later.token == "WaitingForQuota"


def test_held_run_says_who_has_to_act() -> None:
    explanation = told(held_after_evaluation())
    assert explanation.waiting is not None
    assert explanation.waiting.token == "OnHold"
    assert len(explanation.evaluations[0].failures) == 4


def test_late_word_of_a_lost_agent_changes_neither_reason_nor_decision() -> None:
    facts = written_off()
    late = ended(facts.after(5.0), 1, run_id=RUN_ID)
    explanation = told(late, 1)
    assert explanation.verdict.headline == "AGENT_LOST"
    assert explanation.evidence is not None
    assert explanation.evidence.supporting[0].source == "lease of agent-1"


def test_an_agent_that_was_restarted_is_said_to_have_taken_over_again() -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    facts.claim(attempt_stream(RUN_ID, 1), attempt_stream(RUN_ID, 1), Term(1, 2))
    ended(facts.after(1.0), 1)
    explanation = explain(fold_run(RUN_ID, facts.commits), as_of=facts.now)
    assert explanation.where is not None
    assert explanation.where.takeovers == 1
    assert "agent agent-1 (took it over again 1 time)" in as_text(explanation)


@pytest.mark.parametrize("story", STORIES)
def test_every_command_that_is_offered_is_one_that_the_command_line_takes(story: Callable[[], RunFacts]) -> None:
    for number in (None, *(a.attempt for a in fold_run(RUN_ID, story().facts_only).attempts if a.placed)):
        for offered in told(story(), number).commands:
            parse_command(offered.command)


def test_markdown_is_not_broken_by_what_programs_print() -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    hostile = Evidence(
        source="rank 0 stderr", authority=Authority.LOG_SIGNATURE, role=CausalRole.INITIATING, excerpt="a | b\n```\n# c"
    )
    text = as_markdown(told(ended(facts, 1, evidence=(hostile,))))
    assert "a \\| b" in text
    assert "\n# c" in text.split("```text")[1].split("```")[0]
    assert text.count("```") == 4


def test_unknown_run_is_not_found() -> None:
    with pytest.raises(NotFound):
        explain(fold_run(RUN_ID, []), as_of=RunFacts().now)
