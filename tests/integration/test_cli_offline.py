"""A copied log on the command line: the same explanation as from the facts, with nothing to talk to."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from trackway.cli.main import cli
from trackway.log_export import ExportOptions, export_log
from trackway_common.clock import ManualClock
from trackway_common.codec import fact_fields
from trackway_common.errors import NotFound
from trackway_common.event_log import InMemoryEventLog
from trackway_common.history.explain import as_markdown, as_postmortem, as_text, explain
from trackway_common.history.fold import fold_run
from trackway_common.history.goodput import goodput_of
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts, append_commits, run_spec
from trackway_common.testing.run_steps import placed, started, submitted
from trackway_common.testing.run_stories import killed_and_resumed

from tests.integration.fake_trackway import FakeTrackway

WAITING = "0199f3b1-7c2e-7d44-9b1a-3f6c2e8a9d07"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a log of two runs."""
    log = InMemoryEventLog()
    for run_id, facts in {RUN_ID: killed_and_resumed(), WAITING: submitted(RunFacts(WAITING))}.items():
        asyncio.run(append_commits(log, facts.commits, run_id=run_id))
    return _copied(log, tmp_path / "log")


def offline(*arguments: str) -> Result:
    # An address where nobody is: whoever asked it would fail.
    return CliRunner().invoke(cli, [*arguments], prog_name="trackway", env={"TRACKWAY_ENDPOINT": "127.0.0.1:1"})


def test_every_form_is_the_one_of_the_facts(folder: Path) -> None:
    now = START + timedelta(hours=1)
    expected = explain(fold_run(RUN_ID, killed_and_resumed().commits), 1, as_of=now)
    name = ["explain", f"{RUN_ID[:9]}/1", "--log", str(folder)]
    assert offline(*name).stdout == as_text(expected)
    assert offline(*name, "--md").stdout == as_markdown(expected)
    assert offline(*name, "--postmortem").stdout == as_postmortem(expected)
    assert json.loads(offline(*name, "--json").stdout) == fact_fields(expected)


def test_goodput_is_the_one_of_the_facts(folder: Path) -> None:
    expected = goodput_of(fold_run(RUN_ID, killed_and_resumed().commits), as_of=START + timedelta(hours=1))
    told = offline("train", "goodput", RUN_ID[:9], "--log", str(folder), "-o", "json")
    assert json.loads(told.stdout) == json.loads(json.dumps(fact_fields(expected)))
    assert offline("train", "goodput", f"{RUN_ID}/9", "--log", str(folder)).exit_code == 2


def test_a_run_alone_means_its_newest_attempt(folder: Path) -> None:
    assert offline("explain", RUN_ID, "--log", str(folder)).stdout.startswith("COMPLETED  attempt 2")


def test_a_waiting_run_says_who_holds_its_pool(tmp_path: Path) -> None:
    log = InMemoryEventLog()
    holder = "0199f3b1-7c2e-7d44-9b1a-3f6c2e8a9d08"
    holding = started(placed(submitted(RunFacts(holder)), 1), 1)
    waiting = submitted(RunFacts(WAITING).after(60.0), run_spec())
    asyncio.run(append_commits(log, holding.commits, run_id=holder))
    asyncio.run(append_commits(log, waiting.commits, run_id=WAITING))
    told = offline("explain", WAITING, "--log", str(_copied(log, tmp_path / "log")), "--json")
    found = json.loads(told.stdout)["waiting"]
    assert (found["token"], found["ahead"], found["holders"]) == ("WaitingForQuota", 0, ["0199f3b1…9d08/1"])


def test_what_is_in_a_copy_is_listed(folder: Path) -> None:
    runs = json.loads(offline("log", "runs", str(folder), "-o", "json").stdout)
    assert [(run["run_id"], run["phase"]) for run in runs] == [(RUN_ID, "SUCCEEDED"), (WAITING, "QUEUED")]


def test_harm_is_told_and_is_exit_code_1(folder: Path) -> None:
    assert offline("log", "verify", str(folder)).exit_code == 0
    (folder / "index.sqlite").write_bytes(b"")
    harmed = offline("log", "verify", str(folder), "-o", "json")
    assert harmed.exit_code == 1
    assert "index.sqlite" in json.loads(harmed.stdout)["problems"][0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "ffff", "--log", "{folder}"], "has no run 'ffff'"),
        (["explain", RUN_ID + "/9", "--log", "{folder}"], "has no attempt 9"),
        (["explain", RUN_ID, "--log", "{folder}/none"], "holds no exported log"),
        (["explain", RUN_ID, "--store", "{folder}"], "--store goes with --log"),
        (["log", "verify", "{folder}/none"], "holds no exported log"),
        (["log", "export", "{folder}", "--kafka", "127.0.0.1:1"], "not empty"),
        (["log", "export", "x", "--run", "a", "--project", "b"], "not both"),
    ],
)
def test_what_can_t_be_is_refused(folder: Path, arguments: list[str], said: str) -> None:
    refused = offline(*(word.format(folder=folder) for word in arguments))
    assert refused.exit_code == 2, refused.stderr
    assert said in refused.stderr


def test_stored_bytes_are_printed_by_their_digest(tmp_path: Path) -> None:
    fake = FakeTrackway()
    fake.start()
    try:
        fake.blobs["sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"] = b"{}"
        [digest] = fake.blobs
        assert offline("blob", digest, "--endpoint", fake.endpoint).stdout == "{}"
        target = tmp_path / "spec.json"
        assert offline("blob", digest, "--endpoint", fake.endpoint, "--to", str(target)).exit_code == 0
        assert target.read_bytes() == b"{}"
        assert offline("blob", digest, "--endpoint", fake.endpoint, "--to", str(target)).exit_code == 2
    finally:
        fake.stop()


def _copied(log: InMemoryEventLog, folder: Path) -> Path:
    def nothing(digest: str) -> bytes:
        raise NotFound(digest)

    export_log(lambda: log, folder, ExportOptions(), blob=nothing, clock=ManualClock(START + timedelta(hours=1)))
    return folder
