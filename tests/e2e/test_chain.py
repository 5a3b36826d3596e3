"""The whole chain with the digits example: train, commit, evaluate, project, explain, and one trace over it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from trackway_common.events import EvaluationPhase, RunPhase, Verdict

from tests.support.facts import accepted, check_no_gap_no_repeat, records
from tests.support.projection import check_views_equal_a_rebuild
from tests.support.raw_records import check_records
from tests.support.runs import ended, follow, trainer_pid
from tests.support.stack import TRACKWAY, wait_until

EXAMPLE = TRACKWAY.parents[2] / "examples/digits"
SEED_QUERY = """
select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts
where model_family = 'digits' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;"""
RECEIPT = (
    "config_digest",
    "config_json",
    "dataset_digests",
    "environment_digest",
    "placement",
    "resumed_from",
    "last_committed",
    "evaluator_versions",
    "termination_reason",
    "domain",
    "retry_number",
    "changes",
    "productive_seconds",
    "lost_seconds",
    "queue_seconds",
    "gpu_seconds",
    "cost",
)
"""Columns without which an attempt is no receipt (architecture.md §6)."""
NOTHING = (None, "", "[]", "{}", [], {})
EMPTY_IN_FIRST = {"resumed_from", "changes", "evaluator_versions"}
"""What the first attempt has none of: the evaluation judged the second's weights."""
UNHURRIED = ("extra_work: 0 ", "extra_work: 10 ")
"""Seconds between the first commit and the last step: the kill lands in between."""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The example's dataset."""
    folder = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, str(EXAMPLE / "make_data.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def run_id(stack, digits, tmp_path_factory):
    """A run of the example: rank 1 was killed after its first commit, the evaluator while it evaluated."""
    example = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "digits")
    config = example / "run.yaml"
    assert UNHURRIED[0] in config.read_text()
    config.write_text(config.read_text().replace(*UNHURRIED))
    snapshot = stack.cli("dataset", "snapshot", "digits", str(digits), "--split", "test=0.2", "--project", "examples")
    assert snapshot.code == 0, snapshot.err
    submitted = stack.cli("train", "submit", "--config", str(config), "-o", "json")
    assert submitted.code == 0, submitted.err
    killed: list[str] = []

    def kill(followed) -> None:
        fact = followed.facts[-1].fact
        if fact == "CheckpointCommitted" and "trainer" not in killed:
            killed.append("trainer")
            os.kill(trainer_pid(followed, 1), signal.SIGKILL)
        elif fact == "EvaluationStarted" and "evaluator" not in killed:
            killed.append("evaluator")
            stack.kill("evaluator")

    with stack.client() as client:
        made = json.loads(submitted.out)["run_id"]
        follow(client, made, kill)
    assert killed == ["trainer", "evaluator"]
    return made


def test_the_run_succeeds_after_a_retry(client, run_id):
    run = ended(client, run_id)
    assert run.phase is RunPhase.SUCCEEDED
    assert run.attempt == 2


def test_the_evaluation_judged_the_last_committed_weights(client, run_id):
    [evaluation] = client.evaluations(run_id)
    run = client.get_run(run_id)
    assert evaluation.phase is EvaluationPhase.COMPLETED
    result = evaluation.result
    assert result.verdict is Verdict.PASSED
    assert result.checkpoint == run.last_committed
    [task] = result.tasks
    assert task.planned == task.scored + task.errored + task.skipped
    accuracy = next(m for m in task.metrics if m.name == "accuracy" and not m.slice)
    assert accuracy.value > 0.8
    assert accuracy.stderr > 0
    assert {m.slice for m in task.metrics if m.slice} >= {f"label={digit}" for digit in range(10)}
    assert {shard.kind for shard in result.shards} >= {"samples"}
    assert all(
        (
            result.environment_digest,
            result.pack_digest,
            task.task_digest,
            task.decoding_digest,
            result.evaluator_version,
        )
    )


def test_the_receipt_has_every_column(client, run_id):
    second, first = sorted((attempt.receipt for attempt in client.attempts(run_id)), key=lambda r: -r["retry_number"])
    assert [name for name in RECEIPT if first[name] in NOTHING and name not in EMPTY_IN_FIRST] == []
    assert [name for name in RECEIPT if second[name] in NOTHING and name != "changes"] == []
    assert [name for name in EMPTY_IN_FIRST if first[name] not in NOTHING] == []
    assert first["gpu_seconds"] > 0
    assert second["gpu_seconds"] > 0


def test_the_query_runs_unchanged_and_counts_once(client, run_id):
    # No other test trains a model of this family on the stack.
    rows = client.query(SEED_QUERY).rows
    assert sorted((row[0], int(row[1])) for row in rows) == [("COMPLETED", 1), ("UNKNOWN_KILL", 1)]
    assert all(float(row[2]) > 0 for row in rows)


def test_the_explanation_needs_no_other_source(stack, run_id):
    text = stack.cli("explain", f"{run_id}/1").out
    for word in ("UNKNOWN_KILL", "SIGKILL", "rank 1", "digits", "UNKNOWN_KILL", "step"):
        assert word in text
    detail = json.loads(stack.cli("explain", f"{run_id}/1", "-o", "json").out)
    assert detail
    assert stack.cli("explain", run_id, "-o", "markdown").out.startswith("#")


def test_checkpoints_age_as_the_policy_says(client, run_id):
    phases = [checkpoint.phase for checkpoint in client.checkpoints(run_id)]
    assert phases[:3] == ["COMMITTED"] * 3
    assert len(phases) > 3
    assert set(phases[3:]) <= {"SUPERSEDED", "DELETED"}, phases
    assert client.verify_checkpoint(f"{run_id}/{client.get_run(run_id).last_committed.step}").ok


def test_one_trace_spans_submission_to_evaluation(stack, client, run_id):
    of_run = [each for each in records(stack.kafka) if each.accepted and run_id in each.commit.stream]
    assert {each.commit.stream.partition("/")[0] for each in of_run} == {
        "runs",
        "attempts",
        "checkpoints",
        "evaluations",
    }
    traces = {each.commit.traceparent[3:35] for each in of_run}
    assert len(traces) == 1, {(each.commit.stream, each.commit.traceparent) for each in of_run}
    [trace_id] = traces
    for each in of_run:
        assert dict(each.record.headers)["traceparent"].decode() == each.commit.traceparent

    def services() -> set[str]:
        return {file.stem for file in stack.folder.traces.glob("*.jsonl") if trace_id in file.read_text()}

    wait_until(lambda: {"scheduler", "trainer-agent", "evaluator"} <= services(), 10, what="spans of every service")


def test_the_log_has_no_gap_and_the_views_equal_a_rebuild(stack, run_id):
    found = records(stack.kafka)
    check_records(found)
    check_no_gap_no_repeat(accepted(found))
    check_views_equal_a_rebuild(stack)
