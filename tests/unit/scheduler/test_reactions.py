"""What becomes due from what other services say, and the leases of silent agents."""

from __future__ import annotations

import pytest
from trackway_common.events import (
    AttemptEnded,
    CheckpointAbandoned,
    CheckpointCommitted,
    CheckpointQuarantined,
    CheckpointTombstoned,
    EvaluationCompleted,
    EvaluationExhausted,
    GateVerdict,
    TerminationReason,
    Verdict,
)
from trackway_scheduler.domain.commands import (
    RecordAttemptEnded,
    RecordEvaluationCompleted,
    RecordEvaluationExhausted,
)
from trackway_scheduler.domain.leases import LeaseMove, LeaseTerms, Probe, evidence, judge
from trackway_scheduler.domain.outside import Cause, Outside, captures_before, last_committed, note
from trackway_scheduler.domain.reactions import CAPTURE_DEADLINE_S, Moment, react

from tests.unit.scheduler.builders import NOW, Given, checkpoint, ended, later, running

CAUSE = Cause(commit_id="c-1")


def outside(*facts) -> Outside:
    known = Outside()
    for i, fact in enumerate(facts, 1):
        known = note(known, fact, Cause(commit_id=f"c-{i}"))
    return known


def attempt_ended(reason=TerminationReason.COMPLETED, attempt=1, captures=(), last=None) -> AttemptEnded:
    return AttemptEnded(
        attempt=attempt,
        reason=reason,
        cause="it ended",
        captures_in_flight=captures,
        last_committed=last,
        started_at=NOW,
        ended_at=NOW,
    )


def committed(step: int) -> CheckpointCommitted:
    return CheckpointCommitted(checkpoint=checkpoint(step), committed_at=NOW)


def moment(seconds: float = 1) -> Moment:
    return Moment(at=later(seconds), jitter=0.25)


def evaluating() -> Given:
    given = Given(*running()).when(ended(TerminationReason.COMPLETED, step=40))
    return Given(*given.facts, *given.made)


def test_nothing_is_due_for_a_run_whose_attempt_lives():
    assert react(Given(*running()).run, outside(committed(3)), moment()) is None


def test_an_end_is_recorded_with_the_newest_commit_of_both_sources():
    known = outside(committed(3), attempt_ended(TerminationReason.PROCESS_CRASH, last=checkpoint(7)))
    reaction = react(Given(*running()).run, known, moment())
    assert reaction is not None
    assert isinstance(reaction.command, RecordAttemptEnded)
    assert reaction.command.end.last_committed == checkpoint(7)
    assert reaction.command.end.cause == "it ended"
    assert (reaction.command.end.at, reaction.command.end.jitter) == (later(1), 0.25)


def test_the_command_id_hangs_on_the_causing_commit_alone():
    known = outside(attempt_ended(TerminationReason.PROCESS_CRASH))
    first = react(Given(*running()).run, known, moment(1))
    again = react(Given(*running()).run, known, moment(99))
    assert first is not None
    assert again is not None
    assert first.command_id == again.command_id == "c-1/RecordAttemptEnded"


def test_an_end_of_an_earlier_attempt_is_not_due():
    assert react(Given(*running()).run, outside(attempt_ended(attempt=2)), moment()) is None


def test_the_first_end_of_an_attempt_counts():
    known = outside(attempt_ended(TerminationReason.NODE_LOST), attempt_ended(TerminationReason.COMPLETED))
    assert known.ends[1].fact.reason is TerminationReason.NODE_LOST


@pytest.mark.parametrize("name", ["n9", "s9-e1-n9"])
def test_a_finished_training_waits_for_its_last_capture(name):
    known = outside(committed(3), attempt_ended(captures=(name,)))
    assert react(Given(*running()).run, known, moment()) is None
    reaction = react(Given(*running()).run, note(known, committed(9), CAUSE), moment())
    assert reaction is not None
    assert reaction.command.end.last_committed == checkpoint(9)


def test_an_abandoned_capture_is_not_waited_for():
    known = outside(committed(3), attempt_ended(captures=("n9",)))
    abandoned = CheckpointAbandoned(step=9, epoch=1, nonce="n9", why="full", abandoned_at=NOW)
    assert react(Given(*running()).run, note(known, abandoned, CAUSE), moment()) is not None


def test_the_wait_for_captures_has_an_end():
    known = outside(attempt_ended(captures=("n9",)))
    assert react(Given(*running()).run, known, moment(CAPTURE_DEADLINE_S - 1)) is None
    assert react(Given(*running()).run, known, moment(CAPTURE_DEADLINE_S)) is not None


def test_a_failure_does_not_wait_for_captures_but_hands_them_to_the_next_attempt():
    known = outside(attempt_ended(TerminationReason.PROCESS_CRASH, captures=("n9", "n8")), committed(8))
    assert react(Given(*running()).run, known, moment()) is not None
    assert captures_before(known, 2) == ("n9",)
    assert captures_before(known, 1) == ()


def test_checkpoints_that_can_not_be_restored_are_passed_over():
    known = outside(committed(3), committed(7), CheckpointQuarantined(commit_slot=7, why="bad hash"))
    assert last_committed(known, checkpoint(7)) == checkpoint(3)
    assert last_committed(note(known, CheckpointTombstoned(commit_slot=3), CAUSE)) is None


def test_a_completed_evaluation_is_recorded_with_its_failed_blocking_gates():
    gates = (
        GateVerdict(task="t", metric="accuracy", op=">=", threshold=0.8, value=0.7, blocking=True,
                    verdict=Verdict.FAILED),
        GateVerdict(task="t", metric="loss", op="<", threshold=1, value=2, blocking=False, verdict=Verdict.FAILED),
    )  # fmt: skip
    run = evaluating().run
    done = EvaluationCompleted(
        evaluation_id=run.evaluation.evaluation_id,
        verdict=Verdict.FAILED,
        gates=gates,
        checkpoint=checkpoint(40),
        started_at=NOW,
        completed_at=NOW,
    )
    reaction = react(run, outside(done), moment())
    assert reaction is not None
    assert isinstance(reaction.command, RecordEvaluationCompleted)
    assert reaction.command.failed_gates == ("t accuracy is 0.7, the gate asks >= 0.8",)


def test_an_exhausted_evaluation_is_recorded():
    run = evaluating().run
    spent = EvaluationExhausted(evaluation_id=run.evaluation.evaluation_id, message="3 crashes.", exhausted_at=NOW)
    reaction = react(run, outside(spent), moment())
    assert reaction is not None
    assert isinstance(reaction.command, RecordEvaluationExhausted)


def test_an_evaluation_of_another_checkpoint_is_not_due():
    other = EvaluationExhausted(evaluation_id="e" * 32, message="", exhausted_at=NOW)
    assert react(evaluating().run, outside(other), moment()) is None


TERMS = LeaseTerms(probe_after_s=15, write_off_after_s=60)
SILENT = Probe(endpoint="h:1", reachable=False, detail="refused")
ALIVE = Probe(endpoint="h:1", reachable=True, detail="answers")


@pytest.mark.parametrize(
    ("silence_s", "probe", "move"),
    [
        (14, None, LeaseMove.TRUST),
        (15, None, LeaseMove.PROBE),
        (59, SILENT, LeaseMove.PROBE),
        (60, None, LeaseMove.PROBE),
        (60, ALIVE, LeaseMove.PROBE),
        (3600, ALIVE, LeaseMove.PROBE),
        (60, SILENT, LeaseMove.WRITE_OFF),
    ],
)
def test_an_agent_is_given_up_only_after_a_probe_and_a_deadline(silence_s, probe, move):
    assert judge(TERMS, silence_s, probe) is move


def test_the_evidence_of_a_lost_agent_names_silence_and_probe():
    lease, probe = evidence("agent-1", 61.0, SILENT)
    assert "61 s" in lease.excerpt
    assert probe.source == "probe of h:1"
    assert probe.excerpt == "refused"
