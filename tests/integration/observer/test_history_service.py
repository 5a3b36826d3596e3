"""HistoryService over gRPC, on a real engine that holds projected runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, timedelta

import grpc.aio
import pytest
from google.protobuf.json_format import MessageToDict
from trackway_common.clickhouse import ClickHouse
from trackway_common.codec import fact_fields, from_message
from trackway_common.errors import CommandRejected, NotFound, TrackwayError, Unavailable
from trackway_common.event_log import InMemoryEventLog
from trackway_common.history.explain import Explanation, as_text, explain
from trackway_common.history.fold import fold_run
from trackway_common.history.goodput import Goodput, goodput_of
from trackway_common.rpc_errors import as_trackway_error
from trackway_common.settings import ClickHouseSettings
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts, append_commits, run_spec
from trackway_common.testing.run_steps import placed, started, submitted
from trackway_common.testing.run_stories import killed_and_resumed, refused
from trackway_observer.history.reader import HistoryReader
from trackway_proto.v1 import history_service_pb2 as pb
from trackway_proto.v1 import vocabulary_pb2
from trackway_proto.v1.goodput_pb2 import GetGoodputRequest
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub

from tests.integration.observer.serving import filled_read_model, history
from tests.support.read_model import ReadModelServer

OTHER = "0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d02"
REFUSED = "0199f3a1-aaaa-7d44-9b1a-3f6c2e8a9d03"
QUEUED = "0199f3a1-bbbb-7d44-9b1a-3f6c2e8a9d04"


def live() -> RunFacts:
    """Another project's run that runs now."""
    facts = RunFacts(OTHER, START + timedelta(hours=1))
    return started(placed(submitted(facts, run_spec(project="other", seed=(1 << 60) + 1)), 1), 1)


def turned_down() -> RunFacts:
    facts = RunFacts(REFUSED, START)
    return facts.run(*(fact for commit in refused().facts_only for fact in commit.facts))


def waiting() -> RunFacts:
    return submitted(RunFacts(QUEUED, START + timedelta(hours=2)))


STORIES = (killed_and_resumed, live, turned_down, waiting)


async def told() -> InMemoryEventLog:
    """Four runs: one resumed and succeeded, one live, one refused, one waiting."""
    log = InMemoryEventLog()
    for story in STORIES:
        facts = story()
        await append_commits(log, facts.commits, run_id=facts.run_id)
    return log


@pytest.fixture(scope="module")
def settings(server: ReadModelServer) -> ClickHouseSettings:
    return filled_read_model(server.settings("history_service"), told())


@pytest.fixture
async def filled(settings: ClickHouseSettings) -> AsyncIterator[ClickHouse]:
    database = ClickHouse(settings)
    yield database
    await database.close()


@pytest.fixture
async def served(filled: ClickHouse) -> AsyncIterator[HistoryServiceStub]:
    async with history(filled) as stub:
        yield stub


async def meaning(call: grpc.aio.UnaryUnaryCall) -> TrackwayError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return as_trackway_error(failed.value)


@pytest.mark.parametrize("name", [f"projects/demo/runs/{RUN_ID}/attempts/1", f"projects/-/runs/{RUN_ID}/attempts/1"])
async def test_an_attempt_by_its_name(served: HistoryServiceStub, name: str) -> None:
    attempt = await served.GetAttempt(pb.GetAttemptRequest(name=name))
    assert attempt.name == f"projects/demo/runs/{RUN_ID}/attempts/1"
    assert (attempt.state, attempt.attempt, attempt.pool, attempt.accelerators) == ("ENDED", 1, "local", 2)
    assert attempt.reason == vocabulary_pb2.TERMINATION_REASON_UNKNOWN_KILL
    assert attempt.domain != vocabulary_pb2.FAILURE_DOMAIN_UNSPECIFIED
    assert not attempt.HasField("resumed_from")
    last = attempt.last_committed
    assert (last.run_id, last.step, last.epoch, last.nonce, last.slot) == (RUN_ID, 40, 1, "n040", 3)
    assert last.manifest_digest.startswith("sha256:")
    assert attempt.started_at.ToDatetime(tzinfo=UTC) < attempt.ended_at.ToDatetime(tzinfo=UTC)
    assert attempt.model_family == "reasoning"
    receipt = MessageToDict(attempt.receipt)
    assert receipt["termination_reason"] == "UNKNOWN_KILL"
    assert receipt["produced"] == ["s000000020-e0001-n020", "s000000040-e0001-n040"]
    assert receipt["started_at"] == attempt.started_at.ToDatetime(tzinfo=UTC).isoformat()
    assert "place" not in receipt


async def test_the_resumed_attempt_names_what_it_resumed_from(served: HistoryServiceStub) -> None:
    attempt = await served.GetAttempt(pb.GetAttemptRequest(name=f"{RUN_ID}/2"))
    assert (attempt.resumed_from.step, attempt.resumed_from.epoch, attempt.resumed_from.slot) == (40, 1, 3)
    assert (attempt.first_step, attempt.last_step) == (41, 120)


async def test_a_live_attempt_is_in_progress_and_its_seed_exact(served: HistoryServiceStub) -> None:
    attempt = await served.GetAttempt(pb.GetAttemptRequest(name=f"{OTHER}/1"))
    assert attempt.state == "RUNNING"
    assert attempt.reason == vocabulary_pb2.TERMINATION_REASON_UNSPECIFIED
    assert not attempt.HasField("ended_at")
    assert attempt.receipt["termination_reason"] == "IN_PROGRESS"
    assert attempt.receipt["seed"] == str((1 << 60) + 1)


async def test_a_run_s_beginning_is_enough_where_it_is_unique(served: HistoryServiceStub) -> None:
    attempt = await served.GetAttempt(pb.GetAttemptRequest(name=f"{RUN_ID[:-1]}1/1"))
    assert attempt.run_id == RUN_ID
    error = await meaning(served.GetAttempt(pb.GetAttemptRequest(name=f"{RUN_ID[:-1]}/1")))
    assert isinstance(error, CommandRejected)
    assert "write more of the id" in str(error)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{RUN_ID}/3", f"run {RUN_ID} has no attempt 3; its newest is 2"),
        (f"{QUEUED}/1", f"run {QUEUED} has no attempt 1; it waits for its first"),
        ("ffffffff/1", "no run 'ffffffff' is known"),
        (f"projects/other/runs/{RUN_ID}/attempts/1", f"project other has no run {RUN_ID}"),
        ("%/1", "no run '%' is known"),
        ("' or 1 --/1", "is known"),
    ],
)
async def test_what_is_not_there_is_not_found(served: HistoryServiceStub, name: str, said: str) -> None:
    error = await meaning(served.GetAttempt(pb.GetAttemptRequest(name=name)))
    assert isinstance(error, NotFound)
    assert said in str(error)


async def test_attempts_newest_first_page_by_page(served: HistoryServiceStub) -> None:
    seen, token = [], ""
    while True:
        request = pb.ListAttemptsRequest(parent="projects/-", page_size=2, page_token=token)
        page = await served.ListAttempts(request)
        assert len(page.attempts) <= 2
        seen += [(attempt.run_id, attempt.attempt) for attempt in page.attempts]
        token = page.next_page_token
        if not token:
            break
    assert seen == [(OTHER, 1), (RUN_ID, 2), (RUN_ID, 1)]


@pytest.mark.parametrize(
    ("parent", "found"),
    [
        ("projects/other", [(OTHER, 1)]),
        ("projects/nobody", []),
        (f"projects/demo/runs/{RUN_ID}", [(RUN_ID, 2), (RUN_ID, 1)]),
        (RUN_ID, [(RUN_ID, 2), (RUN_ID, 1)]),
        (QUEUED, []),
        (REFUSED, []),
    ],
)
async def test_attempts_of_a_parent(served: HistoryServiceStub, parent: str, found: list[tuple[str, int]]) -> None:
    page = await served.ListAttempts(pb.ListAttemptsRequest(parent=parent))
    assert [(attempt.run_id, attempt.attempt) for attempt in page.attempts] == found
    assert page.next_page_token == ""


async def test_a_listing_of_an_unknown_run_is_not_found(served: HistoryServiceStub) -> None:
    error = await meaning(served.ListAttempts(pb.ListAttemptsRequest(parent="projects/demo/runs/ffff")))
    assert isinstance(error, NotFound)


async def test_a_run_read_back_folds_to_the_same_history(filled: ClickHouse) -> None:
    facts = killed_and_resumed()
    expected = fold_run(RUN_ID, facts.commits)
    assert fold_run(RUN_ID, await HistoryReader(filled).commits(RUN_ID)) == expected


async def test_the_explanation_is_the_one_of_the_facts(served: HistoryServiceStub) -> None:
    explanation = await served.Explain(pb.ExplainRequest(name=f"{RUN_ID}/1"))
    expected = explain(fold_run(RUN_ID, killed_and_resumed().commits), 1, as_of=START)
    assert explanation.text == as_text(expected)
    assert explanation.name == f"projects/demo/runs/{RUN_ID}/attempts/1"
    assert explanation.markdown.startswith("# ")
    assert explanation.detail["verdict"]["headline"] == expected.verdict.headline
    assert explanation.records_behind == 0
    assert explanation.postmortem.startswith("# Incident: ")
    typed = from_message(explanation.parts, Explanation)
    assert as_text(typed) == explanation.text
    # Numbers of a Struct are doubles, and 2 is 2.0 to both.
    assert json.loads(json.dumps(fact_fields(typed))) == MessageToDict(explanation.detail)


async def test_the_goodput_is_the_one_of_the_facts(served: HistoryServiceStub) -> None:
    answer = await served.GetGoodput(GetGoodputRequest(name=RUN_ID))
    expected = goodput_of(
        fold_run(RUN_ID, killed_and_resumed().facts_only), as_of=answer.goodput.as_of.ToDatetime(tzinfo=UTC)
    )
    assert from_message(answer.goodput, Goodput) == expected
    alone = await served.GetGoodput(GetGoodputRequest(name=f"{RUN_ID}/2"))
    assert [attempt.attempt for attempt in alone.goodput.attempts] == [2]


async def test_the_goodput_of_a_live_attempt_is_counted_so_far(served: HistoryServiceStub) -> None:
    [attempt] = (await served.GetGoodput(GetGoodputRequest(name=OTHER))).goodput.attempts
    assert (attempt.state, attempt.reason) == ("RUNNING", "IN_PROGRESS")
    assert sum(part.seconds for part in attempt.parts) == pytest.approx(attempt.wall_seconds * attempt.accelerators)


async def test_goodput_of_what_is_not_there_is_not_found(served: HistoryServiceStub) -> None:
    error = await meaning(served.GetGoodput(GetGoodputRequest(name=f"{RUN_ID}/3")))
    assert isinstance(error, NotFound)
    assert f"run {RUN_ID} has no attempt 3" in str(error)


async def test_a_run_alone_means_its_newest_attempt(served: HistoryServiceStub) -> None:
    explanation = await served.Explain(pb.ExplainRequest(name=f"projects/demo/runs/{RUN_ID}"))
    assert explanation.name.endswith("/attempts/2")


async def test_a_refused_run_is_explained_by_its_fields(served: HistoryServiceStub) -> None:
    explanation = await served.Explain(pb.ExplainRequest(name=REFUSED))
    assert "topology.world_size" in explanation.text
    assert explanation.detail["attempt"] is None


async def test_a_waiting_run_says_who_holds_its_pool(served: HistoryServiceStub) -> None:
    explanation = await served.Explain(pb.ExplainRequest(name=QUEUED))
    waiting_for = explanation.detail["waiting"]
    assert waiting_for["ahead"] == 0
    assert list(waiting_for["holders"]) == ["0199f3a1…9d02/1"]
    assert "held by" in explanation.text


async def test_an_unknown_run_or_attempt_is_not_explained(served: HistoryServiceStub) -> None:
    assert isinstance(await meaning(served.Explain(pb.ExplainRequest(name="ffff"))), NotFound)
    error = await meaning(served.Explain(pb.ExplainRequest(name=f"{RUN_ID}/9")))
    assert isinstance(error, NotFound)
    assert "has no attempt 9" in str(error)


async def test_answers_say_how_far_behind_they_are(filled: ClickHouse) -> None:
    async with history(filled, behind=7) as stub:
        assert (await stub.Explain(pb.ExplainRequest(name=RUN_ID))).records_behind == 7
        assert (await stub.ListAttempts(pb.ListAttemptsRequest(parent=RUN_ID))).records_behind == 7
        parts = [part async for part in stub.Query(pb.QueryRequest(sql="select 1"))]
        assert {part.records_behind for part in parts} == {7}


async def test_before_the_schema_is_there_callers_are_told_to_come_back(filled: ClickHouse) -> None:
    async with history(filled, ready=False) as stub:
        error = await meaning(stub.GetAttempt(pb.GetAttemptRequest(name="x/1")))
        assert isinstance(error, Unavailable)
        assert "being prepared" in str(error)
