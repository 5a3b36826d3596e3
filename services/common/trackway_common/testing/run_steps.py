"""What happens to a run, step by step, as its services would write it down."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RunFacts, checkpoint_ref, run_spec, sha

METRICS = (e.MetricValue(name="loss", value=2.31), e.MetricValue(name="tokens_per_second", value=5120.0))


def submitted(facts: RunFacts, spec: e.RunSpec | None = None) -> RunFacts:
    """Submitted and queued for attempt 1."""
    fact = e.RunSubmitted(run_id=facts.run_id, spec=spec or run_spec(), request_digest=sha("9"), submitted_at=facts.now)
    return facts.run(fact, e.RunQueued(attempt=1, queued_at=facts.now, not_before=facts.now))


def placed(
    facts: RunFacts,
    number: int,
    *,
    queue_s: float = 2.0,
    changes: Sequence[e.Change] = (),
    shape: e.AttemptShape | None = None,
) -> RunFacts:
    """Placed on two ranks after a wait."""
    facts.after(queue_s)
    ranks = tuple(e.RankPlacement(rank=r, bundle=r, cpus=1.0, accelerators=0, memory_bytes=2 << 30) for r in (0, 1))
    return facts.run(
        e.AttemptPlaced(
            attempt=number,
            epoch=number,
            pool="local",
            agent_id="agent-1",
            ranks=ranks,
            changes=tuple(changes),
            placed_at=facts.now,
            queue_seconds=queue_s,
            shape=shape,
        )
    )


def started(facts: RunFacts, number: int, resume: e.CheckpointRef | None = None) -> RunFacts:
    """The agent claimed it, fenced the commit log, chose where to resume and started two ranks."""
    facts.attempt(
        number,
        e.AttemptStarting(
            run_id=facts.run_id, attempt=number, epoch=number, agent_id="agent-1", starting_at=facts.after(0.1).now
        ),
    )
    facts.after(0.1).checkpoint(e.FenceRaised(epoch=number))
    facts.attempt(number, e.ResumeTargetChosen(checkpoint=resume, chosen_at=facts.after(0.1).now))
    ranks = tuple(
        e.RankStarted(rank=r, node="node-a", actor=f"rank-{r}", trainer_pid=4000 + 10 * number + r, device="cpu")
        for r in (0, 1)
    )
    facts.after(3.0).attempt(
        number, e.AttemptStarted(cluster_id="ray-1", world_size=2, ranks=ranks, started_at=facts.now)
    )
    observed = [
        e.EnvironmentObserved(
            rank=r,
            python_version="3.11.7",
            torch_version="2.13.0",
            device="cpu",
            host="node-a",
            environment_digest=sha("e"),
        )
        for r in (0, 1)
    ]
    facts.attempt(number, *observed)
    first = (resume.step if resume else 0) + 1
    return facts.after(2.0).attempt(number, e.AttemptRunning(first_step=first, first_step_at=facts.now))


def captured(facts: RunFacts, number: int, step: int, phases: e.PhaseSeconds | None = None) -> RunFacts:
    """Training stood still while a checkpoint was captured."""
    return facts.attempt(
        number,
        e.CheckpointStarted(
            step=step,
            epoch=number,
            nonce=f"n{step:03d}",
            size_bytes=3_400_000,
            blocked_seconds=0.05,
            started_at=facts.now,
            phases=phases,
        ),
    )


def committed(
    facts: RunFacts,
    number: int,
    step: int,
    slot: int,
    parent: e.CheckpointRef | None = None,
    phases: e.PhaseSeconds | None = None,
) -> RunFacts:
    """Captured, and committed half a second later."""
    captured(facts, number, step, phases)
    facts.after(0.5)
    return facts.checkpoint(
        e.CheckpointCommitted(
            checkpoint=checkpoint_ref(step, number, slot, facts.run_id),
            parent=parent,
            path=f"data/s{step:09d}-e{number:04d}-n{step:03d}",
            size_bytes=3_400_000,
            world_size=2,
            samples_consumed=step * 32,
            config_digest=sha("c"),
            dataset_digests=(sha("d"),),
            committed_at=facts.now,
            metrics=METRICS,
        )
    )


def kill_evidence(at: datetime) -> tuple[e.Evidence, ...]:
    """What is found after a SIGKILL of rank 1: one initiating observation and its cascade."""
    at_ms = int(at.timestamp() * 1000)
    refused = "RuntimeError: [gloo] Connection closed by peer [127.0.0.1]:41873"
    return (
        e.Evidence(
            source="rank 1 exit status",
            authority=e.Authority.EXIT_STATUS,
            role=e.CausalRole.INITIATING,
            observed_at_ms=at_ms,
            excerpt="killed by SIGKILL",
            rank=1,
        ),
        e.Evidence(
            source="cgroup memory.events",
            authority=e.Authority.HOST,
            role=e.CausalRole.UNKNOWN,
            observed_at_ms=at_ms + 2,
            excerpt="oom_kill did not grow: the kernel killed nothing for memory",
            rank=1,
        ),
        e.Evidence(
            source="rank 0 error file",
            authority=e.Authority.ERROR_FILE,
            role=e.CausalRole.CASCADE,
            observed_at_ms=at_ms + 40,
            excerpt=refused,
            rank=0,
        ),
    )


def ended(facts: RunFacts, number: int, **changes: object) -> RunFacts:
    """The agent's last word; by default rank 1 was killed at step 57."""
    fields: dict[str, object] = {
        "run_id": facts.run_id,
        "attempt": number,
        "epoch": number,
        "reason": Reason.UNKNOWN_KILL,
        "domain": e.FailureDomain.UNKNOWN,
        "confidence": 0.9,
        "cause": "Rank 1 was killed by SIGKILL and nothing says by whom.",
        "fingerprint": "unknown-kill/sigkill",
        "classifier_version": "1",
        "blamed_rank": 1,
        "blamed_node": "node-a",
        "ranks": (
            e.RankEnded(rank=0, exit_code=1, last_step=57, peak_memory_bytes=510 << 20),
            e.RankEnded(rank=1, signal="SIGKILL", last_step=57, peak_memory_bytes=498 << 20),
        ),
        "model_family": "reasoning",
        "project": "demo",
        "pool": "local",
        "accelerator_kind": "cpu-slot",
        "accelerators": 2,
        "gpu_seconds": 2 * (facts.now - _started_at(facts, number)).total_seconds(),
        "started_at": _started_at(facts, number),
        "ended_at": facts.now,
        "first_step": 1,
        "last_step": 57,
        "last_metrics": METRICS,
    }
    return facts.attempt(number, e.AttemptEnded(**(fields | changes)))  # type: ignore[arg-type]  # the test's keywords


def decided(facts: RunFacts, number: int, move: e.NextMove, reason: Reason, **changes: object) -> RunFacts:
    """The scheduler's decision after an attempt."""
    fields: dict[str, object] = {
        "attempt": number,
        "reason": reason,
        "move": move,
        "ledger": reason.value,
        "spent": 1,
        "budget": 2,
        "backoff_seconds": 30.0,
        "not_before": facts.now + timedelta(seconds=30),
        "why": "Retry 1 of 2 for UNKNOWN_KILL; the run resumes from its last committed checkpoint.",
        "decided_at": facts.now,
    }
    return facts.run(e.RetryDecided(**(fields | changes)))  # type: ignore[arg-type]  # the test's keywords


def _started_at(facts: RunFacts, number: int) -> datetime:
    starts = [
        fact.started_at
        for commit in facts.commits
        if commit.stream.endswith(f"/{number}")
        for fact in commit.facts
        if isinstance(fact, e.AttemptStarted)
    ]
    return starts[-1] if starts else facts.now
