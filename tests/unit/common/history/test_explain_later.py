"""What later facts add to an explanation: releases, other verdicts, shapes of their own, hangs, pools."""

from __future__ import annotations

from datetime import timedelta

from trackway_common import events as e
from trackway_common.errors import Unavailable
from trackway_common.history.explain import Explanation, Surroundings, as_text, explain
from trackway_common.history.explain.whole_texts import whole_texts
from trackway_common.history.fold import fold_run
from trackway_common.testing.run_facts import RUN_ID, RunFacts, run_spec, sha
from trackway_common.testing.run_steps import decided, ended, placed, started, submitted


def told(facts: RunFacts, attempt: int | None = None, around: Surroundings | None = None) -> Explanation:
    return explain(fold_run(RUN_ID, facts.facts_only), attempt, as_of=facts.now, surroundings=around or Surroundings())


def held() -> RunFacts:
    """Attempt 1 found the disk full; the run waits for a person."""
    facts = started(placed(submitted(RunFacts()), 1), 1)
    ended(
        facts.after(4.0), 1, reason=e.TerminationReason.STORAGE_FULL, domain=e.FailureDomain.INFRA, cause="Disk full."
    )
    nothing = {"budget": 0, "spent": 0, "backoff_seconds": 0.0, "progress": e.Progress.NONE, "why": "Needs more space."}
    decided(facts.after(0.1), 1, e.NextMove.HOLD, e.TerminationReason.STORAGE_FULL, **nothing)
    return facts.run(e.RunHeld(reason="STORAGE_FULL", message="The disk is full.", held_at=facts.now))


def test_a_held_run_names_the_command_that_releases_it() -> None:
    explanation = told(held())
    assert any(c.command.startswith(f"trackway train release {RUN_ID}") for c in explanation.commands)
    assert explanation.decision is not None
    assert explanation.decision.progress == "NONE"
    assert explanation.runbook == "docs/runbooks/storage_full.md"


def test_a_release_is_a_mark_between_the_decision_and_the_next_attempt() -> None:
    facts = held().after(600.0)
    facts.run(
        e.RunReleased(reason="freed 40 GB", actor="ada", released_at=facts.now),
        e.RunQueued(attempt=2, queued_at=facts.now, not_before=facts.now),
    )
    started(placed(facts, 2), 2)
    rows = told(facts, 1).timeline
    assert [(row.gap, row.text) for row in rows[-2:]] == [
        ("held", "released by ada: freed 40 GB"),
        ("queue", "attempt 2 placed"),
    ]
    assert rows[-2].gap_seconds == 600.0


def test_a_newer_classifier_s_verdict_stands_beside_the_first() -> None:
    facts = ended(started(placed(submitted(RunFacts()), 1), 1).after(1.0), 1)
    facts.attempt(
        1,
        e.AttemptReclassified(
            run_id=RUN_ID,
            attempt=1,
            reason=e.TerminationReason.HOST_OOM,
            domain=e.FailureDomain.WORKLOAD,
            confidence=0.95,
            cause="The kernel killed rank 1.",
            classifier_version="2",
            actor="ada",
            reclassified_at=facts.now + timedelta(days=1),
        ),
    )
    explanation = told(facts, 1)
    assert explanation.verdict.headline == "UNKNOWN_KILL"
    assert explanation.judged_again is not None
    assert (explanation.judged_again.reason, explanation.judged_again.version_before) == ("HOST_OOM", "1")
    assert "JUDGED AGAIN" in as_text(explanation)


def test_an_attempt_s_own_shape_is_what_ran() -> None:
    facts = submitted(RunFacts())
    changes = (e.Change(field="micro_batch", before="16", after="8", why="device memory ran out"),)
    shape = e.AttemptShape(
        hyperparameters_json='{"micro_batch":8}',
        config_digest=sha("5"),
        compute=e.ComputeRef(compute_class="large", accelerator_kind="h100", price=e.Price()),
        world_size=2,
        excluded_nodes=("node-b",),
    )
    ranks = tuple(e.RankPlacement(rank=r, bundle=r, cpus=1.0) for r in (0, 1))
    facts.run(
        e.AttemptPlaced(
            attempt=1,
            epoch=1,
            pool="local",
            agent_id="agent-1",
            ranks=ranks,
            changes=changes,
            shape=shape,
            placed_at=facts.now,
        )
    )
    explanation = told(started(facts, 1))
    assert explanation.ran is not None
    assert (explanation.ran.config_digest, explanation.ran.hyperparameters_json) == (sha("5"), '{"micro_batch":8}')
    assert explanation.where is not None
    assert (explanation.where.compute_class, explanation.where.excluded_nodes) == ("large", ("node-b",))
    assert "kept off  node-b" in as_text(explanation)


def test_a_hang_s_gap_begins_at_the_last_word_of_any_rank() -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    last = facts.after(20.0).now
    facts.after(300.0)
    observed = e.Evidence(
        source="hang",
        authority=e.Authority.HOST,
        role=e.CausalRole.INITIATING,
        observed_at_ms=int(facts.now.timestamp() * 1000),
    )
    ended(facts.after(1.0), 1, reason=e.TerminationReason.STALLED, last_progress_at=last, evidence=(observed,))
    rows = {row.text: row for row in told(facts, 1).timeline}
    assert "last word of a rank, at step 57" in rows
    assert rows["failure observed: hang"].gap == "nothing moved"
    assert rows["failure observed: hang"].gap_seconds == 300.0


def test_evidence_that_contradicts_is_shown_against() -> None:
    seen = e.Evidence(
        source="cgroup memory.events",
        authority=e.Authority.HOST,
        role=e.CausalRole.UNKNOWN,
        stance=e.Stance.CONTRADICTS,
        excerpt="oom_kill did not grow",
    )
    explanation = told(ended(started(placed(submitted(RunFacts()), 1), 1), 1, evidence=(seen,)))
    assert explanation.evidence is not None
    assert [o.source for o in explanation.evidence.against] == ["cgroup memory.events"]
    assert explanation.evidence.undecided == ()


def test_a_pool_that_can_never_hold_the_run_is_told() -> None:
    offers = (e.ComputeOffer(compute_class="local-cpu-2x", max_ranks=1, price=e.Price()),)
    pool = e.PoolObserved(pool="local", agent_id="agent-1", offers=offers, observed_at=RunFacts().now)
    small = told(submitted(RunFacts()), around=Surroundings(pool=pool)).waiting
    assert small is not None
    assert (small.token, small.sentence) == (
        "NoMatchingFlavor",
        "Pool local has room for 1 rank of local-cpu-2x when empty; the run needs 2.",
    )
    other = run_spec(compute=e.ComputeRef(compute_class="h100", pool="local", price=e.Price()))
    absent = told(submitted(RunFacts(), other), around=Surroundings(pool=pool)).waiting
    assert absent is not None
    assert absent.token == "NoMatchingFlavor"


def test_a_pool_whose_agents_are_silent_is_told() -> None:
    facts = submitted(RunFacts())
    heard = facts.now
    facts.after(20.0)
    waiting = told(facts, around=Surroundings(agent_heard_at=heard)).waiting
    assert waiting is not None
    assert (waiting.token, waiting.sentence) == ("WaitingForAgent", "No agent of pool local was heard for 20.0 s.")
    recent = told(facts, around=Surroundings(agent_heard_at=facts.now)).waiting
    assert recent is not None
    assert recent.token == "WaitingForQuota"


def test_evidence_too_long_for_its_fact_is_quoted_where_it_is_at_hand() -> None:
    stacks = "".join(f"frame {i}\n" for i in range(60)).encode()
    seen = e.Evidence(
        source="stacks of rank 1", authority=e.Authority.HOST, role=e.CausalRole.INITIATING, blob_digest=sha("7")
    )
    facts = ended(started(placed(submitted(RunFacts()), 1), 1), 1, evidence=(seen,))
    history = fold_run(RUN_ID, facts.facts_only)
    texts = whole_texts(history, None, {sha("7"): stacks}.__getitem__)
    text = as_text(told(facts, around=Surroundings(texts=texts)))
    assert "│ frame 39\n" in text
    assert "frame 40" not in text
    assert f"trackway blob {sha('7')}" in as_text(told(facts))

    def away(digest: str) -> bytes:
        raise Unavailable(digest)

    assert whole_texts(history, None, away) == {}
    assert whole_texts(history, None, lambda _: b"\x00\x01") == {sha("7"): ""}
