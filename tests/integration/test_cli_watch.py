"""``trackway train watch | logs | cancel | show | list``: over connections that break, and by Ctrl-C."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from trackway.cli.main import cli
from trackway.client import TrackwayClient
from trackway_proto.v1.agent_service_pb2 import TailLogsResponse
from trackway_proto.v1.history_service_pb2 import HistoryLogLine

from tests.integration.cli_harness import OTHER, RUN, CommandLine, fake, trackway
from tests.integration.fake_trackway import FakeTrackway

__all__ = ["fake", "trackway"]

RUNNING = [("Fact", "RUNNING")] * 20
FACTS = [("RunSubmitted", "SUBMITTED"), ("RunQueued", "QUEUED"), *RUNNING, ("RunSucceeded", "SUCCEEDED")]


def test_a_watch_misses_and_doubles_no_fact_over_drops(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, FACTS)
    fake.drops.extend([0, 3, 0, 7, 1])
    result = trackway("train", "watch", RUN, "-o", "json")
    assert result.exit_code == 0
    seen = [json.loads(line) for line in result.stdout.splitlines()]
    assert [fact["sequence"] for fact in seen] == list(range(1, len(FACTS) + 1))
    assert [request.cursor for request in fake.requests("WatchRun")] == ["", "", "3", "3", "10", "11"]
    assert seen[0]["fields"] == {"number": 1}


def test_a_watch_survives_a_restart_of_the_service(fake: FakeTrackway) -> None:
    fake.add_run(RUN, FACTS)
    gate = threading.Event()
    whole = fake.WatchRun

    def held_back(request: Any, context: Any) -> Iterator[Any]:
        for fact in whole(request, context):
            if fact.sequence == 8 and not gate.is_set():
                threading.Event().wait(30)  # until the server is stopped
            yield fact

    fake.WatchRun = held_back  # type: ignore[method-assign] # this run's stream stands still after seven facts
    seen = []
    with TrackwayClient(fake.endpoint) as client:
        for fact in client.watch(RUN):
            seen.append(fact.sequence)
            if fact.sequence == 7 and not gate.is_set():
                gate.set()
                fake.stop()
                fake.start(fake.endpoint)
    assert seen == list(range(1, len(FACTS) + 1))


def test_watch_goes_on_behind_a_cursor(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, FACTS)
    result = trackway("train", "watch", "019a", "--cursor", "20")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3
    assert "SUCCEEDED" in result.stdout


def test_a_run_that_was_held_once_is_watched_on(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunHeld", "HELD"), ("RunQueued", "QUEUED"), ("RunFailed", "FAILED")])
    result = trackway("train", "watch", RUN)
    assert result.exit_code == 1
    assert "RunFailed happened" in result.stdout
    assert f"trackway explain {RUN}/1" in result.stderr


def test_a_run_that_is_held_ends_the_watch(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "QUEUED"), ("RunHeld", "HELD")])
    fake.drops.extend([2, 0])
    assert trackway("train", "watch", RUN).exit_code == 1


def test_ctrl_c_leaves_the_run_going_and_says_how_to_come_back(
    trackway: CommandLine, fake: FakeTrackway, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.add_run(RUN, FACTS)

    def interrupted(fact: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trackway.cli.follow.show_line", interrupted)
    result = trackway("train", "watch", RUN)
    assert result.exit_code == 130
    assert f"trackway train watch {RUN}" in result.stderr
    assert f"trackway train cancel {RUN}" in result.stderr
    assert fake.requests("CancelRun") == []


def test_a_run_that_is_not_there_is_refused(trackway: CommandLine) -> None:
    for command in (("show",), ("watch",), ("logs",), ("cancel",)):
        result = trackway("train", *command, RUN)
        assert result.exit_code == 2, command
        assert "there is no run" in result.stderr


def test_runs_are_listed_over_pages_and_limited(trackway: CommandLine, fake: FakeTrackway) -> None:
    ids = [f"019a0000-0000-7000-8000-{i:012}" for i in range(5)]
    for run_id in ids:
        fake.add_run(run_id, FACTS)
    assert [run["run_id"] for run in trackway.json("train", "list")] == ids
    assert len(trackway.json("train", "list", "--limit", "3")) == 3
    table = trackway("train", "list", "--phase", "succeeded").stdout.splitlines()
    assert table[0].split()[:3] == ["RUN", "PHASE", "PROJECT"]
    assert len(table) == 6
    assert fake.requests("ListRuns")[-1].phase == 7


def test_a_run_is_shown_and_cancelled_by_a_short_id(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "QUEUED")])
    fake.add_run(OTHER, [("RunQueued", "QUEUED")])
    assert trackway.json("train", "show", "019a")["run_id"] == RUN
    assert trackway("train", "show", "019").exit_code == 2
    assert trackway.json("train", "cancel", "019b", "--reason", "enough")["phase"] == "CANCELLED"
    [request] = fake.requests("CancelRun")
    assert (request.name, request.reason, len(request.request_id)) == ("019b", "enough", 36)


def test_a_held_run_is_released_and_shown_with_its_budgets(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunHeld", "HELD")])
    run = fake.runs[RUN]
    run.ledgers.add(ledger="STORAGE_FULL", spent=1, budget=1, counts="retries over the run's life")
    run.shape.hyperparameters_json = '{"batch":32}'
    decided = run.decisions.add(attempt=1)
    decided.decided_at.GetCurrentTime()
    decided.not_before.GetCurrentTime()
    decided.changes.add(field="hyperparameters.batch", before="64", after="32", why="half of it")
    assert trackway("train", "release", RUN).exit_code == 2
    checked = trackway.json("train", "release", RUN, "--reason", "space was made", "--validate-only")
    assert checked["phase"] == "HELD"
    shown = trackway("train", "release", "019a", "--reason", "space was made").stdout
    assert "QUEUED" in shown
    assert "hyperparameters.batch: 64 → 32 (half of it)" in shown
    assert '{"batch":32}' in shown
    assert "STORAGE_FULL 1 of 1 retries over the run's life" in shown
    request = fake.requests("ReleaseRun")[-1]
    assert (request.name, request.reason, len(request.request_id)) == ("019a", "space was made", 36)


def _line(number: int) -> TailLogsResponse:
    cursor = str(number + 1)
    return TailLogsResponse(attempt=1, rank=number % 2, stream="stdout", text=f"line {number}", cursor=cursor)


def _lines(count: int) -> list[TailLogsResponse]:
    return [_line(number) for number in range(count)]


def test_logs_resume_after_a_drop(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, FACTS)
    fake.log_lines = _lines(9)
    fake.drops.extend([4, 2])
    result = trackway("train", "logs", RUN)
    assert result.stdout.splitlines() == [f"[{i % 2}] line {i}" for i in range(9)]
    assert [request.attempt for request in fake.requests("TailLogs")] == [0, 1, 1]


def test_logs_of_one_rank_and_attempt(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, FACTS)
    fake.log_lines = _lines(4)
    result = trackway("train", "logs", f"{RUN}/1", "--rank", "1", "--follow", "-o", "json")
    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == ["line 1", "line 3"]
    [request] = fake.requests("TailLogs")
    assert (request.run_id, request.attempt, request.rank, request.follow) == (RUN, 1, 1, True)


@pytest.mark.parametrize("flags", [(), ("--follow",)])
def test_logs_that_the_agent_forgot_come_from_the_history(
    trackway: CommandLine, fake: FakeTrackway, flags: tuple[str, ...]
) -> None:
    fake.add_run(RUN, FACTS)
    fake.answers["ListLogs"] = [HistoryLogLine(attempt=1, rank=0, text="sealed", stream="stdout")]
    result = trackway("train", "logs", RUN, *flags)
    assert (result.exit_code, result.stdout) == (0, "[0] sealed\n")
    assert fake.requests("ListLogs")[0].attempt == 1


def test_following_logs_waits_for_the_attempt_to_begin(fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "QUEUED")])
    asked = []

    def begins_later(request: Any, context: Any) -> Iterator[Any]:
        asked.append(request)
        if len(asked) == 3:
            fake.log_lines = _lines(2)
        return FakeTrackway.TailLogs(fake, request, context)

    fake.TailLogs = begins_later  # type: ignore[method-assign] # the attempt is placed while the client waits
    result = CliRunner().invoke(cli, ["train", "logs", RUN, "-f", "--endpoint", fake.endpoint])
    assert result.stdout == "[0] line 0\n[1] line 1\n"
    assert len(asked) == 3
