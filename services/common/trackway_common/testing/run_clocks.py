"""Runs whose sessions measured where the time went."""

from __future__ import annotations

from datetime import datetime, timedelta

from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RUN_ID, RunFacts, checkpoint_ref
from trackway_common.testing.run_steps import committed, decided, ended, kill_evidence, placed, started, submitted

FINISHED = {
    "reason": Reason.COMPLETED,
    "cause": "Every rank finished with exit code 0.",
    "blamed_rank": None,
    "blamed_node": None,
    "evidence": (),
}


def clocks(at: datetime, *, wait: float, stall: float, step: float, restore: float = 0.0) -> e.PhaseSeconds:
    """A session's word at a moment."""
    return e.PhaseSeconds(
        rank=1,
        restore_seconds=restore,
        data_wait_seconds=wait,
        checkpoint_stall_seconds=stall,
        step_seconds=step,
        measured_at=at,
    )


def measured_and_killed() -> RunFacts:
    """Attempt 1 waits for data, saves steps 20 and 40, and is killed at step 57; a retry is queued."""
    facts = started(placed(submitted(RunFacts()), 1), 1)
    first = facts.after(10.0).now
    committed(facts, 1, 20, 2, phases=clocks(first, wait=2.0, stall=0.25, step=7.75))
    second = facts.after(9.5).now
    # The agent heard of the capture 0.2 s after it was taken.
    taken = clocks(second, wait=4.0, stall=0.5, step=15.25)
    committed(facts.after(0.2), 1, 40, 3, checkpoint_ref(20, 1, 2), taken)
    died = facts.after(8.0).now
    word = clocks(died - timedelta(seconds=1), wait=5.0, stall=0.5, step=22.0)
    last = checkpoint_ref(40, 1, 3)
    ended(
        facts.after(0.5),
        1,
        evidence=kill_evidence(died),
        last_committed=last,
        phases=word,
        last_progress_at=word.measured_at,
    )
    decided(facts.after(0.05), 1, e.NextMove.RETRY, Reason.UNKNOWN_KILL)
    return facts.run(e.RunQueued(attempt=2, queued_at=facts.now, not_before=facts.now))


def measured_and_resumed() -> RunFacts:
    """The retry restores step 40, and finishes half a second before its programs end."""
    return _finished(measured_and_killed(), checkpoint_ref(40, 1, 3))


def resumed_further_back() -> RunFacts:
    """The retry passes the newest checkpoint over and goes on from step 20, so twenty more steps are repeated."""
    return _finished(measured_and_killed(), checkpoint_ref(20, 1, 2))


def hung() -> RunFacts:
    """Steps stop coming after the commit of step 20; 40 s later the ranks are stopped."""
    facts = started(placed(submitted(RunFacts()), 1), 1)
    at = facts.after(10.0).now
    committed(facts, 1, 20, 2, phases=clocks(at, wait=1.0, stall=0.25, step=8.75))
    last = facts.after(2.5).now
    stopped = facts.after(40.0).now
    facts.attempt(1, e.AttemptStopping(why="no progress for 40 s", stopping_at=stopped))
    return _ended_hung(facts.after(1.0), Reason.STALLED, clocks(last, wait=1.0, stall=0.25, step=11.75))


def hung_at_start() -> RunFacts:
    """A session was opened, and then nothing: the collective of the first step times out in the rank itself."""
    facts = placed(submitted(RunFacts()), 1)
    facts.attempt(
        1,
        e.AttemptStarting(run_id=RUN_ID, attempt=1, epoch=1, agent_id="agent-1", starting_at=facts.now),
        e.ResumeTargetChosen(chosen_at=facts.now),
    )
    ranks = tuple(e.RankStarted(rank=r, node="node-a", actor=f"r{r}", trainer_pid=9, device="cpu") for r in (0, 1))
    facts.after(3.0).attempt(1, e.AttemptStarted(cluster_id="ray-1", world_size=2, ranks=ranks, started_at=facts.now))
    opened = facts.after(4.0).now
    facts.after(30.0)
    return _ended_hung(facts, Reason.COLLECTIVE_TIMEOUT, clocks(opened, wait=0.0, stall=0.0, step=0.0))


def failed_before_its_first_step() -> RunFacts:
    """A session was opened and the program raised before its first step: all of it was startup."""
    facts = started_without_step(placed(submitted(RunFacts()), 1))
    word = clocks(facts.after(2.0).now, wait=0.0, stall=0.0, step=0.0, restore=0.5)
    evidence = kill_evidence(facts.after(1.0).now)
    ended(
        facts.after(0.5),
        1,
        evidence=evidence,
        first_step=0,
        last_step=0,
        phases=word,
        last_progress_at=word.measured_at,
    )
    return facts


def started_without_step(facts: RunFacts) -> RunFacts:
    """Ranks run; no step yet."""
    ranks = tuple(e.RankStarted(rank=r, node="node-a", actor=f"r{r}", trainer_pid=9, device="cpu") for r in (0, 1))
    return facts.after(3.0).attempt(
        1, e.AttemptStarted(cluster_id="ray-1", world_size=2, ranks=ranks, started_at=facts.now)
    )


def _ended_hung(facts: RunFacts, reason: Reason, word: e.PhaseSeconds) -> RunFacts:
    ended(
        facts,
        1,
        reason=reason,
        cause="No rank showed progress.",
        evidence=kill_evidence(facts.now),
        phases=word,
        last_progress_at=word.measured_at,
    )
    return decided(facts, 1, e.NextMove.RETRY, reason)


def _finished(facts: RunFacts, resume: e.CheckpointRef) -> RunFacts:
    started(placed(facts, 2, queue_s=30.0), 2, resume)
    at = facts.after(20.0).now
    committed(facts, 2, 120, 5, resume, clocks(at, wait=3.0, stall=0.5, step=16.5, restore=1.25))
    result = checkpoint_ref(120, 2, 5)
    word = clocks(facts.after(0.25).now, wait=3.0, stall=0.5, step=17.25, restore=1.25)
    done = {"first_step": resume.step + 1, "last_step": 120, "resumed_from": resume, "last_committed": result}
    return ended(facts.after(0.5), 2, **FINISHED, **done, phases=word, last_progress_at=word.measured_at)
