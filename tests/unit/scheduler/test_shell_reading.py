"""Watching, listing and finding, on an in-memory log."""

from __future__ import annotations

import json

import pytest
from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.events import TerminationReason as Reason
from trackway_proto.v1 import directory_service_pb2
from trackway_proto.v1 import run_service_pb2 as pb

from tests.unit.scheduler.stage import SPEC, Caller, Stage, World, watch


async def test_watch_resumes_behind_its_cursor_without_gap_or_repetition(stage):
    run = await stage.submit()
    await stage.phase(run.run_id, "RUNNING")
    await stage.world.end_attempt(run.run_id, 1, Reason.COMPLETED)
    await stage.phase(run.run_id, "SUCCEEDED")
    everything = await watch(stage, run.run_id)
    names = [message.fact for message in everything]
    assert names == ["RunSubmitted", "RunQueued", "AttemptPlaced", "AttemptEnded", "RetryDecided", "RunSucceeded"]
    assert all(message.summary for message in everything)
    assert json.loads(everything[2].fields_json)["agent_id"] == "agent-1"
    for i, message in enumerate(everything):
        rest = await watch(stage, run.run_id, message.cursor)
        assert [one.fact for one in rest] == names[i + 1 :]
    with pytest.raises(CommandRejected, match="cursor"):
        await watch(stage, run.run_id, "abc")


async def test_a_watch_sees_facts_as_they_come_and_ends_with_the_run(stage):
    run = await stage.submit()
    await stage.phase(run.run_id, "RUNNING")
    seen = []
    async for message in stage.runs.WatchRun(pb.WatchRunRequest(name=run.run_id), Caller()):
        seen.append(message.fact)
        if message.fact == "AttemptPlaced":
            await stage.world.end_attempt(run.run_id, 1, Reason.USER_CODE_ERROR)
    assert seen[-1] == "RunFailed"


async def test_runs_are_listed_newest_first_in_pages_and_by_filter(stage):
    runs = [(await stage.submit()).run_id for _ in range(3)]
    other = await stage.submit(SPEC.replace("project: demo", "project: other"))
    request = pb.ListRunsRequest(parent="projects/demo", page_size=2)
    first = await stage.runs.ListRuns(request, Caller())
    assert [run.run_id for run in first.runs] == [runs[2], runs[1]]
    request.page_token = first.next_page_token
    second = await stage.runs.ListRuns(request, Caller())
    assert [run.run_id for run in second.runs] == [runs[0]]
    assert second.next_page_token == ""
    everything = await stage.runs.ListRuns(pb.ListRunsRequest(parent="projects/-"), Caller())
    assert everything.runs[0].run_id == other.run_id
    with pytest.raises(CommandRejected, match="other filters"):
        await stage.runs.ListRuns(pb.ListRunsRequest(parent="projects/-", page_token=first.next_page_token), Caller())
    none = await stage.runs.ListRuns(pb.ListRunsRequest(model_family="vision"), Caller())
    assert list(none.runs) == []


async def test_the_directory_lists_this_scheduler(stage):
    answer = await stage.directory.ListServices(directory_service_pb2.ListServicesRequest(), Caller())
    assert [(one.service, one.endpoint) for one in answer.services] == [("scheduler", "one:1")]


async def test_nothing_is_answered_before_the_log_is_read():
    with pytest.raises(Unavailable, match="reading the log"):
        await Stage(World()).submit()
