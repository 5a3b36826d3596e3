"""A run's facts fold into what happened."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st
from trackway_common.commit import UnknownFact
from trackway_common.events import (
    CancelRequested,
    CheckpointPhase,
    CheckpointQuarantined,
    EvaluationPhase,
    NextMove,
    RunPhase,
    TerminationReason,
    Verdict,
)
from trackway_common.history.fold import fold_run
from trackway_common.testing.run_facts import RUN_ID, RunFacts
from trackway_common.testing.run_stories import cancelled_in_queue, killed, killed_and_resumed, refused
from trackway_common.testing.run_troubles import held_after_evaluation, written_off


def test_killed_and_resumed_run_is_told_attempt_by_attempt() -> None:
    history = fold_run(RUN_ID, killed_and_resumed().facts_only)
    first, second = history.attempts
    assert history.phase is RunPhase.SUCCEEDED
    assert first.ended is not None
    assert first.ended.reason is TerminationReason.UNKNOWN_KILL
    assert first.decision is not None
    assert first.decision.move is NextMove.RETRY
    assert second.resume is not None
    assert second.resume.checkpoint is not None
    assert second.resume.checkpoint.step == 40
    assert history.fences == (1, 2)
    assert history.evaluations[0].phase is EvaluationPhase.COMPLETED
    assert history.evaluations[0].completed is not None
    assert history.evaluations[0].completed.verdict is Verdict.PASSED


def test_checkpoints_follow_their_slots() -> None:
    history = fold_run(RUN_ID, killed_and_resumed().facts_only)
    phases = {c.committed.checkpoint.step: c.phase for c in history.checkpoints}
    assert phases == {
        20: CheckpointPhase.DELETED,
        40: CheckpointPhase.COMMITTED,
        120: CheckpointPhase.COMMITTED,
    }
    assert [c.slot for c in history.checkpoints] == [2, 3, 5]
    assert history.checkpoints[0].freed_bytes == 3_400_000


def test_quarantine_is_remembered_after_deletion() -> None:
    facts = killed(RunFacts()).checkpoint(CheckpointQuarantined(commit_slot=3, why="digest of shard 0 differs"))
    checkpoint = fold_run(RUN_ID, facts.facts_only).checkpoints[1]
    assert checkpoint.phase is CheckpointPhase.QUARANTINED
    assert checkpoint.quarantined_why == "digest of shard 0 differs"


def test_every_story_ends_in_its_phase() -> None:
    phases = {
        story.__name__: fold_run(RUN_ID, story().facts_only).phase
        for story in (refused, cancelled_in_queue, written_off, held_after_evaluation)
    }
    assert phases == {
        "refused": RunPhase.REFUSED,
        "cancelled_in_queue": RunPhase.CANCELLED,
        "written_off": RunPhase.RUNNING,
        "held_after_evaluation": RunPhase.HELD,
    }


def test_other_runs_and_partition_claims_change_nothing() -> None:
    mine, other = killed_and_resumed(), killed_and_resumed("0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d02")
    mixed = [commit for pair in zip(mine.commits, other.commits, strict=True) for commit in pair]
    assert fold_run(RUN_ID, mixed).attempts[0].ended == fold_run(RUN_ID, mine.facts_only).attempts[0].ended
    assert fold_run(RUN_ID, mixed).checkpoints == fold_run(RUN_ID, mine.facts_only).checkpoints


def test_facts_of_a_newer_schema_are_counted() -> None:
    facts = killed(RunFacts())
    facts.run(UnknownFact(number=190, raw=b"\xf2\x0b\x00"))  # type: ignore[arg-type]  # what the codec returns for one
    history = fold_run(RUN_ID, facts.facts_only)
    assert history.unknown_facts == 1
    assert any("newer schema" in m.text for m in history.timeline)


@given(st.randoms(use_true_random=False))
def test_streams_may_be_mixed_in_any_way(order: random.Random) -> None:
    commits = killed_and_resumed().facts_only
    expected = fold_run(RUN_ID, commits)
    queues = {k: list(g) for k, g in itertools.groupby(sorted(commits, key=_stream), key=_stream)}
    mixed = []
    while queues:
        stream = order.choice(sorted(queues))
        mixed.append(queues[stream].pop(0))
        if not queues[stream]:
            del queues[stream]
    history = fold_run(RUN_ID, mixed)
    assert history.attempts == expected.attempts
    assert history.checkpoints == expected.checkpoints
    assert [e.completed for e in history.evaluations] == [e.completed for e in expected.evaluations]
    assert (history.phase, history.phase_at) == (expected.phase, expected.phase_at)
    assert len(history.timeline) == len(expected.timeline)


def test_timeline_keeps_the_order_of_a_stream_whose_clock_went_back() -> None:
    facts = killed(RunFacts()).after(-3600.0)
    facts.run(CancelRequested(actor="ada", requested_at=facts.now))
    history = fold_run(RUN_ID, facts.facts_only)
    for stream in {m.stream for m in history.timeline}:
        sequences = [m.sequence for m in history.timeline if m.stream == stream]
        assert sequences == sorted(sequences)


def _stream(commit: object) -> str:
    return str(getattr(commit, "stream", ""))
