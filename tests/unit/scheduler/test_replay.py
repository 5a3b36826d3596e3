"""Random lives of a run: replay equals live, budgets hold, phases follow the state machine."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from trackway_common.attempt_shape import declared_shape
from trackway_common.decider import fold
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    AttemptPlaced,
    FailureDomain,
    NextMove,
    Progress,
    RetryDecided,
    RetryOverride,
    RunPhase,
    RunReleased,
    Verdict,
)
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import run_stream
from trackway_common.reasons import POLICIES, UNLIMITED
from trackway_scheduler.domain.commands import (
    CancelRun,
    PlaceAttempt,
    RecordEvaluationCompleted,
    RecordEvaluationExhausted,
    ReleaseRun,
)
from trackway_scheduler.domain.decider import SCHEDULER
from trackway_scheduler.domain.state import ENDED, RunState, initial

from tests.unit.scheduler.builders import RUN, ended, later, ranks, submit
from tests.unit.scheduler.shapes import ROOM, tunable_spec, values

ALLOWED = {
    RunPhase.UNSPECIFIED: {RunPhase.SUBMITTED, RunPhase.REFUSED},
    RunPhase.SUBMITTED: {RunPhase.QUEUED, RunPhase.REFUSED},
    RunPhase.QUEUED: {RunPhase.RUNNING, RunPhase.HELD, RunPhase.CANCELLED, RunPhase.FAILED},
    RunPhase.RUNNING: {RunPhase.QUEUED, RunPhase.HELD, RunPhase.EVALUATING, RunPhase.FAILED, RunPhase.CANCELLED},
    RunPhase.EVALUATING: {RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.HELD, RunPhase.CANCELLED},
    RunPhase.HELD: {RunPhase.QUEUED, RunPhase.EVALUATING, RunPhase.CANCELLED},
}
STREAM = run_stream(RUN)

reasons = st.sampled_from(sorted(POLICIES))
moves = st.one_of(
    st.tuples(
        st.just("end"),
        reasons,
        st.one_of(st.none(), st.integers(0, 30)),
        st.floats(0, 1),
        st.sampled_from([None, "node-a", "node-b"]),
    ),
    st.tuples(st.just("place"), st.integers(0, 2), st.sampled_from([2, 2, 1])),
    st.tuples(st.just("cancel"), st.integers(0, 40)),
    st.tuples(st.just("release"), st.sampled_from(["", "space was made"])),
    st.tuples(st.just("evaluated"), st.sampled_from(sorted(Verdict)), st.booleans()),
)
overrides = st.lists(
    st.builds(
        RetryOverride, reason=reasons, max=st.integers(-1, 4), backoff_seconds=st.one_of(st.none(), st.floats(0, 9))
    ),
    max_size=3,
    unique_by=lambda override: override.reason,
)


def command(move, state: RunState, second: int):
    """The command a move stands for, aimed at where the run is."""
    match move:
        case ("end", reason, step, jitter, node):
            return ended(reason, state.attempt, at=later(second), step=step, jitter=jitter, blamed_node=node, room=ROOM)
        case ("release", why):
            return ReleaseRun(actor="ada", reason=why, at=later(second))
        case ("place", ahead, count):
            queued = state.queued
            attempt = (queued.attempt if queued else state.attempt) + (1 if ahead == 2 else 0)
            at = later(second) if ahead else (queued.not_before if queued else later(second))
            return PlaceAttempt(
                attempt=attempt,
                pool="local",
                agent_id="a",
                ranks=ranks(count),
                captures_in_flight=(),
                at=at,
                shortfall="" if count == 2 else "2 ranks were not to be had",
            )
        case ("evaluated", verdict, exhausted):
            identity = state.evaluation.evaluation_id if state.evaluation else "?"
            if exhausted:
                return RecordEvaluationExhausted(evaluation_id=identity, message="spent.", at=later(second))
            return RecordEvaluationCompleted(evaluation_id=identity, verdict=verdict, failed_gates=(), at=later(second))
    return CancelRun(actor="ada", reason="", at=later(second))


def live(spec, script) -> list:
    """All facts of a life, each checked against the state machine as it happens."""
    state, facts = initial(STREAM), []
    for second, move in enumerate([None, *script]):
        try:
            made = SCHEDULER.decide(state, submit(spec) if move is None else command(move, state, second))
        except CommandRejected:
            assert state.phase in ENDED or (move and move[0] == "release")
            made = ()
        for fact in made:
            after = SCHEDULER.evolve(state, fact)
            assert after.phase is state.phase or after.phase in ALLOWED[state.phase], (state.phase, fact)
            state = after
        facts.extend(made)
        assert state == fold(SCHEDULER, STREAM, facts)
    return facts


# A cancel ends almost every life, so most scripts go without.
scripts = st.lists(moves.filter(lambda move: move[0] != "cancel" or move[1] == 0), max_size=60)


@settings(max_examples=150, deadline=None)
@given(scripts, overrides, st.integers(1, 12), st.integers(1, 30))
def test_replay_equals_live_and_budgets_are_never_exceeded(script, retry, ceiling, max_attempts):
    spec = tunable_spec(
        {"batch": 32, "passes": 1, "workers": 4}, "micro_batch", "accumulation", "loader_workers",
        classes=("small", "large"), retry=tuple(retry), retry_ceiling=ceiling, max_attempts=max_attempts,
    )  # fmt: skip
    facts = live(spec, script)
    assert_changes(facts, spec)
    decisions = [fact for fact in facts if isinstance(fact, RetryDecided)]
    placements = [fact for fact in facts if isinstance(fact, AttemptPlaced)]
    assert len(placements) <= max_attempts + uncounted(decisions)
    assert [fact.epoch for fact in placements] == list(range(1, len(placements) + 1))
    for decided in decisions:
        assert decided.budget == UNLIMITED or decided.spent <= decided.budget
        assert decided.not_before >= decided.decided_at
    assert_budgets([fact for fact in facts if isinstance(fact, RetryDecided | RunReleased)], spec, ceiling)


def uncounted(decisions: list[RetryDecided]) -> int:
    """Attempts that no budget over a life counts, straight from the decisions."""
    interrupted = {Reason.PREEMPTED_SCHEDULER, Reason.PREEMPTED_SPOT, Reason.NODE_DRAIN, Reason.WALLTIME}
    free = [one for one in decisions if one.reason in interrupted and one.progress is Progress.ADVANCED]
    return len(free) + sum(one.reason is Reason.CAPACITY_TIMEOUT for one in decisions)


def assert_changes(facts: list, spec) -> None:
    """What needs a change has one, no change is a no-op, the batch stays, and placements are what was decided."""
    shape, pending = declared_shape(spec), ()
    for fact in facts:
        match fact:
            case RetryDecided(move=NextMove.RETRY):
                after = fact.shape or declared_shape(spec)
                assert all(change.before != change.after and change.why for change in fact.changes)
                assert bool(fact.changes) == (after != replace(shape, world_size=after.world_size))
                assert fact.changes or not POLICIES[fact.reason].budget_with_change
                assert POLICIES[fact.reason].domain is not FailureDomain.DATA
                config = values(after)
                assert config["batch"] * config["passes"] == 32
                shape, pending = after, fact.changes
            case RetryDecided():
                assert (fact.changes, fact.shape) == ((), None)
            case AttemptPlaced():
                ran = fact.shape or declared_shape(spec)
                assert ran == replace(shape, world_size=len(fact.ranks))
                assert fact.changes[: len(pending)] == pending
                shape, pending = ran, ()


def assert_budgets(decisions: list[RetryDecided | RunReleased], spec, ceiling: int) -> None:
    """Count retries again, straight from the decisions, without the ledger's code."""
    budgets = {reason: policy.budget_with_change or policy.budget for reason, policy in POLICIES.items()}
    budgets |= {override.reason: override.max for override in spec.retry}
    since: list[Reason] = []
    life: list[Reason] = []
    highest = -1
    for decided in decisions:
        if isinstance(decided, RunReleased):
            since = []
            continue
        if decided.last_committed is not None and decided.last_committed.step > highest:
            highest, since = decided.last_committed.step, []
        if decided.move is not NextMove.RETRY:
            continue
        since.append(decided.reason)
        life.append(decided.reason)
        policy = POLICIES[decided.reason]
        counted = (life if policy.counting == "LT" else since).count(decided.reason)
        assert budgets[decided.reason] == UNLIMITED or counted <= budgets[decided.reason]
        if policy.under_ceiling:
            assert sum(POLICIES[reason].under_ceiling for reason in since) <= ceiling
