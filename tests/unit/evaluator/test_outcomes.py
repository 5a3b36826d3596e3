"""What an evaluation process left behind, and what its end says."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from trackway_common.events import Authority, EvaluationFailure
from trackway_evaluator.adapters.outcomes import Broken, End, Scored, read_outcome
from trackway_evaluator.protocol import WorkFailure, WorkResult, write_record

RESULT = WorkResult(tasks=(), shards=(), environment_json="{}", evaluator_version="0.1", seconds=1.5)


def broken(folder: Path, status: int | None, *, oom: bool = False) -> Broken:
    outcome = read_outcome(folder, End(status=status, killed_for_memory=oom))
    assert isinstance(outcome, Broken)
    return outcome


def test_result_counts_however_the_process_ended(tmp_path: Path) -> None:
    write_record(tmp_path / "result.json", RESULT)
    assert read_outcome(tmp_path, End(status=-signal.SIGKILL)) == Scored(result=RESULT)


@pytest.mark.parametrize(
    ("status", "oom", "failure", "words"),
    [
        (-signal.SIGKILL, False, EvaluationFailure.CRASH, "killed by SIGKILL"),
        (-signal.SIGKILL, True, EvaluationFailure.OOM, "killing for memory"),
        (-signal.SIGSEGV, True, EvaluationFailure.CRASH, "killed by SIGSEGV"),
        (-signal.SIGRTMIN - 3, False, EvaluationFailure.CRASH, "killed by signal"),
        (3, False, EvaluationFailure.CRASH, "exit code 3"),
        (0, False, EvaluationFailure.CRASH, "exit code 0 and no result"),
        (None, False, EvaluationFailure.CRASH, "nobody saw how"),
    ],
)
def test_end_without_a_word(
    tmp_path: Path, status: int | None, oom: bool, failure: EvaluationFailure, words: str
) -> None:
    outcome = broken(tmp_path, status, oom=oom)
    assert outcome.failure is failure
    assert words in outcome.message


def test_told_failure_is_believed_and_shown(tmp_path: Path) -> None:
    write_record(tmp_path / "failure.json", WorkFailure(failure="CONFIG_INVALID", message="no", traceback="frames"))
    (tmp_path / "stderr.log").write_text("x" * 5000 + "last words")
    outcome = broken(tmp_path, 1)
    assert (outcome.failure, outcome.message) == (EvaluationFailure.CONFIG_INVALID, "no")
    assert [one.authority for one in outcome.evidence] == [
        Authority.ERROR_FILE,
        Authority.EXIT_STATUS,
        Authority.LOG_SIGNATURE,
    ]
    assert outcome.evidence[2].excerpt.endswith("last words")
    assert all(len(one.excerpt.encode()) <= 2048 for one in outcome.evidence)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"protocol":2}', b"\xff", b'{"protocol":1}'])
def test_torn_result_is_a_crash(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "result.json").write_bytes(content)
    assert broken(tmp_path, 0).failure is EvaluationFailure.CRASH
