"""The classifier: one reason per attempt, and no consequence ever chosen as the root."""

from __future__ import annotations

import itertools
import signal
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trackway_common.events import Authority, CausalRole, FailureDomain
from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.domain.classify import VERSION, classify
from trackway_trainer_agent.domain.observations import Frame, Observation, RankSilent

from tests.unit.trainer_agent.ends import CASCADE_MESSAGES, CASES, T0, cascade, ended, raised, stopped


@pytest.mark.parametrize("name", CASES)
def test_reason_and_blame(name: str) -> None:
    observations, reason, rank = CASES[name]
    verdict = classify(2, observations)
    assert (verdict.reason, verdict.blamed_rank) == (reason, rank)
    assert verdict.classifier_version == VERSION
    assert verdict.cause
    assert 0 < verdict.confidence <= 1


@pytest.mark.parametrize("name", CASES)
def test_order_of_arrival_does_not_matter(name: str) -> None:
    observations, _, _ = CASES[name]
    verdicts = {classify(2, order) for order in itertools.permutations(observations)}
    assert len(verdicts) == 1


NOTHING_INITIATES = {"only consequences", "abort by the watchdog", "loader worker killed by nobody known"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOTHING_INITIATES])
@pytest.mark.parametrize("which", range(len(CASCADE_MESSAGES)))
def test_a_cascade_changes_nothing(name: str, which: int) -> None:
    observations, reason, _ = CASES[name]
    if reason in {Reason.COMPLETED, Reason.UNKNOWN} and name != "launcher gone, status unknown":
        return  # No cause is there: a consequence is then the best that is known.
    before = classify(2, observations)
    after = classify(2, (*observations, cascade(7, which, at=10)))
    assert (after.reason, after.cause, after.fingerprint) == (before.reason, before.cause, before.fingerprint)


INITIATING = st.sampled_from(
    [*(ended(1, signal=name) for name in ("SIGKILL", "SIGSEGV", "SIGABRT")), raised(1), ended(1, code=3)]
)
CASCADES = st.lists(
    st.builds(
        cascade, rank=st.integers(2, 40), which=st.integers(0, len(CASCADE_MESSAGES) - 1), at=st.integers(1, 5_000)
    )
)
TEARDOWNS = st.lists(st.builds(stopped, rank=st.integers(41, 60), at=st.integers(401, 5_000)))


@settings(max_examples=200, deadline=None)
@given(first=INITIATING, cascades=CASCADES, teardowns=TEARDOWNS, silent=st.lists(st.integers(61, 64)), data=st.data())
def test_no_number_of_consequences_hides_the_cause(first, cascades, teardowns, silent, data) -> None:
    alone = classify(64, (first,))
    others: list[Observation] = [*cascades, *teardowns, *(RankSilent(rank=rank, at_ms=T0) for rank in silent)]
    together = classify(64, data.draw(st.permutations([first, *others])))
    assert (together.reason, together.blamed_rank, together.fingerprint) == (alone.reason, 1, alone.fingerprint)
    assert {item.rank for item in together.evidence if item.role is CausalRole.INITIATING} == {1}


def test_survivors_are_cascade_and_stopped_ranks_teardown() -> None:
    verdict = classify(3, (ended(1, signal="SIGKILL", oom_kills=0), cascade(0), stopped(2)))
    roles = {(item.rank, item.authority): item.role for item in verdict.evidence}
    assert roles[1, Authority.EXIT_STATUS] is CausalRole.INITIATING
    assert roles[0, Authority.ERROR_FILE] is CausalRole.CASCADE
    assert roles[0, Authority.EXIT_STATUS] is CausalRole.CASCADE
    assert roles[2, Authority.EXIT_STATUS] is CausalRole.TEARDOWN
    assert verdict.evidence[0].rank == 1
    against = next(item for item in verdict.evidence if item.authority is Authority.HOST)
    assert "speaks against HOST_OOM" in against.excerpt


def test_the_earlier_failure_on_one_node_counts_whatever_its_authority() -> None:
    crash_first = classify(2, (ended(1, signal="SIGSEGV", at=100), raised(0, "RuntimeError", "wrapped", at=150)))
    error_first = classify(2, (ended(1, signal="SIGSEGV", at=200), raised(0, "RuntimeError", "wrapped", at=150)))
    assert (crash_first.reason, error_first.reason) == (Reason.PROCESS_CRASH, Reason.USER_CODE_ERROR)


def test_clocks_of_two_nodes_are_not_compared() -> None:
    here = raised(0, at=5_000)
    there = replace(ended(1, signal="SIGSEGV", at=100), node="n2")
    assert classify(2, (here, there)).reason is Reason.USER_CODE_ERROR


def test_same_failure_on_several_ranks_is_one_failure() -> None:
    verdict = classify(3, (raised(2, at=90), raised(0), raised(1)))
    said = "Rank 2 raised ValueError: bad shape at step 7 (train.py:40 in step)."
    assert verdict.cause == f"{said} The same on ranks 0, 1."
    assert verdict.domain is FailureDomain.WORKLOAD


def test_fingerprint_ignores_numbers_but_not_places() -> None:
    first = classify(1, (raised(0, message="index 17 out of range at 0x7f12"),))
    again = classify(1, (raised(0, message="index 99 out of range at 0x8aa1"),))
    elsewhere = classify(1, (raised(0, frames=(Frame(file="other.py", line=1, function="f"),)),))
    assert first.fingerprint == again.fingerprint != elsewhere.fingerprint
    assert first.fingerprint.startswith("ValueError-")


def test_long_text_is_cut_and_evidence_bounded() -> None:
    seen = [raised(rank, message="x" * 5_000, at=100 + rank) for rank in range(200)]
    verdict = classify(200, seen)
    assert len(verdict.evidence) == 64
    assert all(len(item.excerpt.encode()) <= 2048 for item in verdict.evidence)


def test_every_signal_gives_a_reason() -> None:
    for known in signal.Signals:
        assert classify(1, (ended(0, signal=known.name),)).reason in {Reason.PROCESS_CRASH, Reason.UNKNOWN_KILL}


def test_the_last_words_stand_beside_the_exit_status() -> None:
    verdict = classify(1, (ended(0, code=3, stderr_tail=("warming up", "no license found")),))
    assert verdict.evidence[0].excerpt.splitlines() == ["exited with code 3", "warming up", "no license found"]
