"""Runs that tests tell, from submission to their end."""

from __future__ import annotations

from datetime import datetime, timedelta

from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts, checkpoint_ref, run_spec, sha
from trackway_common.testing.run_steps import committed, decided, ended, kill_evidence, placed, started, submitted

EVALUATION_ID = "0199f3a9-0000-7000-8000-00000000e001"


def killed(facts: RunFacts) -> RunFacts:
    """Attempt 1 commits step 40, loses rank 1 at step 57, and a retry is queued."""
    placed(submitted(facts), 1)
    started(facts, 1)
    committed(facts.after(10.0), 1, 20, 2)
    committed(facts.after(10.0), 1, 40, 3, checkpoint_ref(20, 1, 2, facts.run_id))
    died = facts.after(8.0).now
    last = checkpoint_ref(40, 1, 3, facts.run_id)
    ended(facts.after(0.4), 1, evidence=kill_evidence(died), last_committed=last, first_step=1)
    decided(facts.after(0.05), 1, e.NextMove.RETRY, Reason.UNKNOWN_KILL)
    return facts.run(
        e.RunQueued(attempt=2, queued_at=facts.now, not_before=facts.now + timedelta(seconds=30)),
    )


def killed_and_resumed(run_id: str = RUN_ID, start: datetime = START) -> RunFacts:
    """The demo: a rank is killed, the run resumes at the right step, is evaluated, and succeeds."""
    facts = killed(RunFacts(run_id, start))
    resume = checkpoint_ref(40, 1, 3, run_id)
    started(placed(facts, 2, queue_s=30.0), 2, resume)
    committed(facts.after(20.0), 2, 120, 5, resume)
    facts.checkpoint(e.CheckpointSuperseded(commit_slot=2, step=20, by_policy="keep_last=2"))
    facts.checkpoint(e.CheckpointTombstoned(commit_slot=2), e.CheckpointDeleted(commit_slot=2, freed_bytes=3_400_000))
    result = checkpoint_ref(120, 2, 5, run_id)
    completed = {
        "reason": Reason.COMPLETED,
        "domain": e.FailureDomain.WORKLOAD,
        "confidence": 1.0,
        "cause": "Every rank finished with exit code 0.",
        "fingerprint": "",
        "blamed_rank": None,
        "blamed_node": None,
        "ranks": tuple(e.RankEnded(rank=r, exit_code=0, last_step=120) for r in (0, 1)),
        "first_step": 41,
        "last_step": 120,
        "resumed_from": resume,
        "last_committed": result,
    }
    ended(facts.after(1.0), 2, **completed)
    evaluated(facts, result)
    return facts.run(e.RunSucceeded(result=result, ended_at=facts.now))


def evaluated(facts: RunFacts, checkpoint: e.CheckpointRef, verdict: e.Verdict = e.Verdict.PASSED) -> RunFacts:
    """The final evaluation, in one try."""
    evaluation_ordered(facts, checkpoint)
    started_at = facts.now
    facts.evaluation(
        e.EvaluationStarted(
            evaluation_id=EVALUATION_ID,
            evaluation_attempt=1,
            host="node-a",
            pid=5000,
            started_at=started_at,
            batch_size=16,
        )
    )
    return evaluation_completed(facts.after(4.0), checkpoint, verdict, started_at)


def evaluation_ordered(facts: RunFacts, checkpoint: e.CheckpointRef) -> RunFacts:
    """The scheduler decides on it once training has finished, and the evaluator takes the order."""
    pack = run_spec().evaluation_pack
    why = "Training finished: the pack bytes-lm judges its last checkpoint."
    nothing = {"ledger": "", "spent": 0, "budget": 0, "backoff_seconds": 0.0, "why": why}
    decided(facts, 2, e.NextMove.EVALUATE, Reason.COMPLETED, **nothing)
    facts.run(
        e.FinalEvaluationOrdered(evaluation_id=EVALUATION_ID, pack=pack, checkpoint=checkpoint, ordered_at=facts.now)
    )
    return facts.after(0.2).evaluation(
        e.EvaluationRequested(
            evaluation_id=EVALUATION_ID,
            pack=pack,
            checkpoint=checkpoint,
            final=True,
            project="demo",
            model_family="reasoning",
            requested_at=facts.now,
        )
    )


def evaluation_completed(
    facts: RunFacts, checkpoint: e.CheckpointRef, verdict: e.Verdict, started_at: datetime
) -> RunFacts:
    """One task with one metric, judged by one gate."""
    metric = e.TaskMetric(name="bits_per_byte", value=3.2, stderr=0.04, primary=True, samples=64)
    task = e.TaskResult(
        task="heldout-bpb", task_version="1", task_digest=sha("7"), planned=64, scored=64, metrics=(metric,)
    )
    gate = e.GateVerdict(
        task=task.task, metric=metric.name, op="<=", threshold=5.0, value=metric.value, verdict=verdict
    )
    return facts.evaluation(
        e.EvaluationCompleted(
            evaluation_id=EVALUATION_ID,
            evaluation_attempt=1,
            verdict=verdict,
            tasks=(task,),
            gates=(gate,),
            environment_digest=sha("e"),
            evaluator_version="builtin 0.1.0",
            pack_digest=run_spec().evaluation_pack.digest,
            checkpoint=checkpoint,
            project="demo",
            model_family="reasoning",
            started_at=started_at,
            completed_at=facts.now,
            seconds=4.0,
        )
    )


TRACEBACK = """KeyError: 'lr'
  /code/bytes_lm/train.py:88 in main
  /code/bytes_lm/train.py:41 in make_optimizer"""


def user_error() -> RunFacts:
    """The training code raises before the first checkpoint; no retry."""
    facts = RunFacts()
    started(placed(submitted(facts), 1), 1)
    facts.after(1.5)
    evidence = tuple(
        e.Evidence(
            source=f"rank {rank} error file",
            authority=e.Authority.ERROR_FILE,
            role=e.CausalRole.INITIATING,
            observed_at_ms=int(facts.now.timestamp() * 1000),
            excerpt=TRACEBACK,
            rank=rank,
        )
        for rank in (0, 1)
    )
    ended(
        facts.after(0.3),
        1,
        reason=Reason.USER_CODE_ERROR,
        domain=e.FailureDomain.WORKLOAD,
        cause="Rank 0 raised KeyError: 'lr' in make_optimizer, bytes_lm/train.py line 41.",
        blamed_rank=0,
        blamed_node=None,
        evidence=evidence,
        last_step=0,
        ranks=tuple(e.RankEnded(rank=r, exit_code=1) for r in (0, 1)),
    )
    why = "USER_CODE_ERROR is not retried."
    decided(facts, 1, e.NextMove.STOP, Reason.USER_CODE_ERROR, spent=0, budget=0, backoff_seconds=0.0, why=why)
    message = f"Rank 0 raised KeyError: 'lr'. {why}"
    return facts.run(e.RunFailed(reason="USER_CODE_ERROR", message=message, ended_at=facts.now))


def refused() -> RunFacts:
    """A submission with two wrong fields."""
    facts = RunFacts()
    violations = (
        e.Violation(field="topology.world_size", description="64 is more than the 2 ranks that local-cpu-2x has"),
        e.Violation(field="datasets[0]", description="no dataset named 'stdlb'; did you mean 'stdlib'?"),
    )
    return facts.run(
        e.RunRefused(
            run_id=facts.run_id,
            request_digest=sha("9"),
            message="2 inputs can't be pinned.",
            violations=violations,
            refused_at=facts.now,
            project="demo",
            model_family="reasoning",
            owner="ada",
        )
    )


def cancelled_in_queue() -> RunFacts:
    """Cancelled before its first placement."""
    facts = submitted(RunFacts()).after(60.0)
    facts.run(e.CancelRequested(reason="wrong data", actor="ada", requested_at=facts.now))
    return facts.run(e.RunCancelled(reason="CANCELLED_BY_USER", ended_at=facts.now))
