"""What each kind of failure leaves behind: its reason, its budget, its next move."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from trackway_common.events import RunPhase, TerminationReason

from tests.support.projection import wait_projected
from tests.support.runs import ended, follow, losses, spec, submit, trainer_pid


def kill_after_first_commit(rank: int, leave: Path):
    """Send SIGKILL to a rank's trainer once, after the first committed checkpoint; then leave to go on."""
    killed: list[int] = []

    def on_fact(followed) -> None:
        if followed.facts[-1].fact == "CheckpointCommitted" and not killed:
            killed.append(trainer_pid(followed, rank))
            os.kill(killed[0], signal.SIGKILL)
            leave.touch()

    return on_fact


def test_a_killed_worker_is_resumed_and_its_loss_curve_is_bit_equal(client, stack, tmp_path):
    long, leave = {"steps": 60, "work": 40}, tmp_path / "leave"
    straight = submit(client, spec(tmp_path, name="a.yaml", hyperparameters=long))
    follow(client, straight)
    held = long | {"hold": {"step": 9, "file": str(leave)}}
    hurt = submit(client, spec(tmp_path, name="b.yaml", hyperparameters=held))
    followed = follow(client, hurt, kill_after_first_commit(rank=1, leave=leave))

    assert ended(client, hurt).phase is RunPhase.SUCCEEDED
    first = followed.named("AttemptEnded")[0]
    assert (first["reason"], first["blamed_rank"]) == ("UNKNOWN_KILL", 1)
    decided = followed.named("RetryDecided")[0]
    assert (decided["move"], decided["ledger"], decided["spent"]) == ("RETRY", "UNKNOWN_KILL", 1)
    target = followed.named("ResumeTargetChosen")[1]["checkpoint"]
    assert target["step"] == 5
    assert followed.named("AttemptRunning")[1]["first_step"] == 6
    wait_projected(stack)
    expected = losses(client, straight)
    assert len(expected) == 60
    assert losses(client, hurt) == expected
    check_goodput(client, hurt)


def check_goodput(client, run_id: str) -> None:
    """Every accelerator-second of a killed attempt and of its retry has one use."""
    found = client.goodput(run_id).goodput
    held = sum(attempt.wall_seconds * attempt.accelerators for attempt in found.attempts)
    assert sum(part.seconds for part in found.parts) == pytest.approx(held, rel=0.01)
    killed, retry = ({part.name: part.seconds for part in attempt.parts} for attempt in found.attempts)
    assert killed["lost"] > 0
    assert killed["productive"] > 0
    assert killed["stall"] > 0
    assert retry["restore"] > 0
    assert (retry["lost"], retry["uncommitted"]) == (0, 0)
    assert killed["unattributed"] + retry["unattributed"] <= 0.01 * found.seconds
    [(summed,)] = client.query(
        "select sum(accelerators * (startup_seconds + restore_seconds + productive_seconds + data_wait_seconds"
        " + stall_seconds + lost_seconds + hang_seconds + idle_seconds + unattributed_seconds))"
        f" from training_attempts where run_id = '{run_id}'"
    ).rows
    assert summed == pytest.approx(found.seconds, rel=1e-6)


def test_a_run_out_of_memory_goes_on_with_half_the_micro_batch_and_the_same_losses(client, stack, tmp_path):
    shape = {"dropout": 0.0, "batch": 8, "passes": 1}
    straight = submit(client, spec(tmp_path, name="a.yaml", hyperparameters=shape))
    fault = {"kind": "oom", "step": 12, "rank": 1, "attempt": 1}
    tunable = {"micro_batch": "batch", "accumulation": "passes"}
    hurt = submit(client, spec(tmp_path, name="b.yaml", hyperparameters=shape | {"fault": fault}, tunable=tunable))
    follow(client, straight)
    followed = follow(client, hurt)

    assert ended(client, hurt).phase is RunPhase.SUCCEEDED
    assert followed.named("AttemptEnded")[0]["reason"] == "DEVICE_OOM"
    decided, placed = followed.named("RetryDecided")[0], followed.named("AttemptPlaced")[1]
    assert (decided["move"], decided["spent"], decided["budget"]) == ("RETRY", 1, 3)
    assert placed["changes"] == decided["changes"]
    assert [(change["field"], change["before"], change["after"]) for change in placed["changes"]] == [
        ("hyperparameters.batch", "8", "4"),
        ("hyperparameters.passes", "1", "2"),
    ]
    assert followed.named("ResumeTargetChosen")[1]["checkpoint"]["step"] == 10
    commits = followed.named("CheckpointCommitted")
    assert {commit["config_digest"] for commit in commits if commit["checkpoint"]["epoch"] == 2} == {
        placed["shape"]["config_digest"]
    }
    wait_projected(stack)
    expected = losses(client, straight)
    assert len(expected) == 30
    assert losses(client, hurt) == pytest.approx(expected, rel=1e-5)


def test_an_exception_in_user_code_is_not_retried(client, tmp_path):
    fault = {"kind": "raise", "step": 3, "rank": 0}
    run_id = submit(client, spec(tmp_path, hyperparameters={"fault": fault}))
    followed = follow(client, run_id)
    assert ended(client, run_id).phase is RunPhase.FAILED
    attempt = followed.one("AttemptEnded")
    assert (attempt["reason"], attempt["domain"], attempt["blamed_rank"]) == ("USER_CODE_ERROR", "WORKLOAD", 0)
    assert "bad shape at step 3" in attempt["cause"]
    assert followed.one("RetryDecided")["move"] == "STOP"
    text = client.explain(f"{run_id}/1").text
    assert "ValueError" in text
    assert "train.py" in text


def test_a_crash_spends_its_own_budget_and_then_stops(client, tmp_path):
    fault = {"kind": "SIGSEGV", "step": 2, "rank": 1}
    retry = {"process_crash": {"max": 1, "backoff_s": 0.2}}
    run_id = submit(client, spec(tmp_path, hyperparameters={"fault": fault}, retry=retry))
    followed = follow(client, run_id)
    assert ended(client, run_id).phase is RunPhase.FAILED
    assert [attempt["reason"] for attempt in followed.named("AttemptEnded")] == ["PROCESS_CRASH"] * 2
    decisions = [(d["move"], d["spent"], d["budget"]) for d in followed.named("RetryDecided")]
    assert decisions == [("RETRY", 1, 1), ("STOP", 1, 1)]


def test_data_that_changed_under_the_snapshot_is_never_retried(client, stack, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "x.txt").write_text("0 0 0 0 0\n" * 20)
    assert stack.cli("dataset", "snapshot", "moving", str(folder), "--project", "tests").code == 0
    (folder / "x.txt").write_text("1 0 0 0 0\n" * 20)
    code = tmp_path / "code"
    code.mkdir()
    (code / "read.py").write_text(
        "import trackway.training as tw\n\ndef main():\n    with tw.session() as s:\n"
        "        s.dataset('moving').files()[0].read_bytes()\n"
    )
    config = spec(tmp_path, datasets=["moving"], code={"path": str(code)}, entrypoint={"function": "read:main"})
    run_id = submit(client, config)
    followed = follow(client, run_id)
    assert ended(client, run_id).phase is RunPhase.FAILED
    assert followed.one("AttemptEnded")["reason"] == TerminationReason.DATA_CORRUPT
    assert followed.one("RetryDecided")["move"] == "STOP"


def test_an_entrypoint_that_is_not_there_is_a_wrong_config(client, tmp_path):
    run_id = submit(client, spec(tmp_path, entrypoint={"function": "train:nothing"}))
    followed = follow(client, run_id)
    assert ended(client, run_id).phase is RunPhase.FAILED
    assert followed.one("AttemptEnded")["reason"] == TerminationReason.CONFIG_INVALID


def test_a_cancelled_run_stops_and_keeps_its_checkpoints(client, stack, tmp_path):
    stop_file = str(tmp_path / "never")
    run_id = submit(client, spec(tmp_path, hyperparameters={"stop_file": stop_file, "work": 20}))
    cancelled = []

    def cancel(followed) -> None:
        if followed.facts[-1].fact == "CheckpointCommitted" and not cancelled:
            cancelled.append(stack.cli("train", "cancel", run_id, "--reason", "seen enough"))

    followed = follow(client, run_id, cancel)
    assert cancelled[0].code == 0, cancelled[0].err
    assert ended(client, run_id).phase is RunPhase.CANCELLED
    assert followed.one("AttemptEnded")["reason"] == TerminationReason.CANCELLED_BY_USER
    assert any(checkpoint.phase == "COMMITTED" for checkpoint in client.checkpoints(run_id))
