"""Runs that don't go as planned."""

from __future__ import annotations

from datetime import timedelta

from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RunFacts, checkpoint_ref, run_spec
from trackway_common.testing.run_steps import committed, decided, ended, kill_evidence, placed, started, submitted
from trackway_common.testing.run_stories import EVALUATION_ID


def script_started_over() -> RunFacts:
    """A plain script, without a checkpoint or a step: killed, and its second attempt begins at step 0."""
    facts = placed(submitted(RunFacts(), run_spec(evaluation_pack=e.EvaluationPackRef())), 1)
    _script(facts, 1)
    facts.after(20.0)
    ended(facts, 1, evidence=kill_evidence(facts.now), first_step=0, last_step=0, last_metrics=())
    decided(facts, 1, e.NextMove.RETRY, Reason.UNKNOWN_KILL, why="UNKNOWN_KILL may be retried twice; this is retry 1.")
    facts.run(e.RunQueued(attempt=2, queued_at=facts.now, not_before=facts.now + timedelta(seconds=30)))
    _script(placed(facts, 2, queue_s=30.0), 2)
    return facts


def judged_again() -> RunFacts:
    """A later classifier knows why the first attempt was killed; what was decided then stays."""
    facts = started(placed(submitted(RunFacts()), 1), 1)
    facts.after(20.0)
    ended(facts, 1, evidence=kill_evidence(facts.now))
    decided(facts, 1, e.NextMove.RETRY, Reason.UNKNOWN_KILL)
    kernel = e.Evidence(
        source="rank 1 kernel log",
        authority=e.Authority.HOST,
        role=e.CausalRole.INITIATING,
        observed_at_ms=int(facts.now.timestamp() * 1000),
        excerpt="Memory cgroup out of memory: Killed process 4711 (python)",
        rank=1,
        stance=e.Stance.SUPPORTS,
    )
    facts.after(600.0)
    verdict = e.AttemptReclassified(
        run_id=facts.run_id,
        attempt=1,
        reason=Reason.HOST_OOM,
        domain=e.FailureDomain.WORKLOAD,
        confidence=0.95,
        cause="The kernel killed rank 1 for memory.",
        fingerprint="HOST_OOM-123",
        classifier_version="2999-1-1",
        blamed_rank=1,
        blamed_node="node-1",
        evidence=(kernel,),
        actor="ada",
        reclassified_at=facts.now,
    )
    return facts.attempt(1, verdict)


def written_off() -> RunFacts:
    """The agent went silent with its cluster; the scheduler spoke for it, and its own word came late."""
    facts = started(placed(submitted(RunFacts()), 1), 1)
    committed(facts.after(10.0), 1, 20, 2)
    seen = e.Evidence(
        source="lease of agent-1",
        authority=e.Authority.SUBSTRATE,
        role=e.CausalRole.INITIATING,
        excerpt="No heartbeat for 30 s and the cluster at 127.0.0.1 refuses connections.",
    )
    facts.after(30.0).run(
        e.AttemptWrittenOff(attempt=1, reason=Reason.AGENT_LOST, evidence=(seen,), written_off_at=facts.now)
    )
    return decided(facts, 1, e.NextMove.RETRY, Reason.AGENT_LOST, ledger="AGENT_LOST", budget=3)


def held_after_evaluation() -> RunFacts:
    """The evaluator gave up; a person has to look."""
    facts = started(placed(submitted(RunFacts()), 1), 1)
    committed(facts.after(10.0), 1, 120, 2)
    result = checkpoint_ref(120, 1, 2)
    done = {"reason": Reason.COMPLETED, "confidence": 1.0, "cause": "Every rank finished.", "blamed_rank": None}
    ended(facts.after(1.0), 1, **done, last_step=120, last_committed=result, evidence=())
    pack = run_spec().evaluation_pack
    facts.run(e.FinalEvaluationOrdered(evaluation_id=EVALUATION_ID, pack=pack, checkpoint=result, ordered_at=facts.now))
    facts.evaluation(
        e.EvaluationRequested(
            evaluation_id=EVALUATION_ID, pack=pack, checkpoint=result, final=True, requested_at=facts.now
        )
    )
    for number in (1, 2, 3):
        begun = e.EvaluationStarted(
            evaluation_id=EVALUATION_ID, evaluation_attempt=number, host="node-a", pid=1, started_at=facts.now
        )
        failed = e.EvaluationFailed(
            evaluation_id=EVALUATION_ID,
            evaluation_attempt=number,
            failure=e.EvaluationFailure.CRASH,
            message="killed by SIGSEGV",
            move=e.NextMove.RETRY if number < 3 else e.NextMove.HOLD,
            spent=number,
            budget=3,
            failed_at=facts.after(2.0).now,
        )
        facts.evaluation(begun, failed)
    facts.evaluation(
        e.EvaluationExhausted(
            evaluation_id=EVALUATION_ID,
            failure=e.EvaluationFailure.CRASH,
            message="3 of 3 tries crashed",
            exhausted_at=facts.now,
        )
    )
    message = "The evaluation crashed 3 times; the checkpoint stays committed."
    return facts.run(e.RunHeld(reason="EVALUATION_EXHAUSTED", message=message, held_at=facts.now))


def _script(facts: RunFacts, number: int) -> RunFacts:
    """Ranks start, nothing is reported."""
    ranks = tuple(e.RankStarted(rank=r, node="node-a", actor=f"r{r}", trainer_pid=9, device="cpu") for r in (0, 1))
    facts.attempt(
        number,
        e.AttemptStarting(run_id=facts.run_id, attempt=number, epoch=number, agent_id="agent-1", starting_at=facts.now),
        e.ResumeTargetChosen(chosen_at=facts.now),
    )
    return facts.after(3.0).attempt(
        number, e.AttemptStarted(cluster_id="ray-1", world_size=2, ranks=ranks, started_at=facts.now)
    )
