"""A failed run of a real stack: its log taken along, explained where no stack is, and its inputs run again."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from trackway import TrackwayClient
from trackway_common.events import RunPhase

from tests.support.runs import ended, follow, spec, submit
from tests.support.stack import TRACKWAY, Answer, Stack


@pytest.fixture(scope="module")
def failed(stack: Stack, numbers: Path, tmp_path_factory) -> str:
    """A run whose training code raises at step 7."""
    fault = {"kind": "raise", "step": 7, "rank": 0, "attempt": 1}
    config = spec(tmp_path_factory.mktemp("failing"), hyperparameters={"fault": fault})
    with stack.client() as client:
        run_id = submit(client, config)
        follow(client, run_id)
        assert ended(client, run_id).phase is RunPhase.FAILED
    return run_id


def offline(*arguments: str) -> Answer:
    """The command line in a bare environment: no endpoint, no state folder."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [str(TRACKWAY), *arguments], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def test_a_copied_log_explains_as_the_stack_does(stack: Stack, failed: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "log")
    made = stack.cli("log", "export", folder, "--run", failed[:13], "--blobs", "--telemetry", "-o", "json")
    assert made.code == 0, made.err
    assert json.loads(made.out)["blobs"] > 0
    assert offline("log", "verify", folder).code == 0
    live = stack.cli("explain", failed)
    assert "USER_CODE_ERROR" in live.out
    assert offline("explain", failed, "--log", folder).out == live.out
    assert json.loads(offline("explain", failed, "--log", folder, "--json").out)["attempt"] == 1
    assert offline("explain", failed, "--log", folder, "--postmortem").out.startswith("# Incident: USER")


def test_a_clone_is_given_the_same_and_ends_the_same(stack: Stack, client: TrackwayClient, failed: str) -> None:
    answer = stack.cli("train", "submit", "--clone", failed, "--follow", "-o", "json")
    assert answer.code == 1, answer.err
    clone = json.loads(answer.out)
    first, second = client.get_run(failed).spec, client.get_run(clone["run_id"]).spec
    assert first is not None
    assert second is not None
    assert (second.config_digest, second.seed, second.code.archive_digest) == (
        first.config_digest,
        first.seed,
        first.code.archive_digest,
    )
    assert [d.manifest_digest for d in second.datasets] == [d.manifest_digest for d in first.datasets]
    assert client.attempt(f"{clone['run_id']}/1").cause == client.attempt(f"{failed}/1").cause
