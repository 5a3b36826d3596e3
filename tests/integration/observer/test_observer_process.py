"""The observer as it runs: a real broker, a real engine, its own process, and its death."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import grpc
import pytest
from trackway.local.state import read_endpoints
from trackway_common.ids import uuid7
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings
from trackway_common.testing.run_facts import RunFacts, append_commits
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_proto.v1 import history_service_pb2 as pb
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub

from tests.support.projection import rebuild_and_compare
from tests.support.stack import Stack, running_stack, wait_until

PARTS = frozenset({"kafka", "clickhouse", "observer"})


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    yield from running_stack(tmp_path_factory.mktemp("observer"), only=PARTS)


@pytest.fixture
def history(stack: Stack) -> Iterator[HistoryServiceStub]:
    with grpc.insecure_channel(read_endpoints(stack.state)["observer"]) as channel:
        yield HistoryServiceStub(channel)


def append(stack: Stack, facts: RunFacts) -> None:
    async def append_all() -> None:
        log = KafkaEventLog(KafkaSettings(bootstrap=stack.kafka))
        try:
            await append_commits(log, facts.commits, run_id=facts.run_id)
        finally:
            await log.close()

    asyncio.run(append_all())


@pytest.fixture(scope="module")
def run_id(stack: Stack) -> str:
    """A run whose facts were written before anybody asked."""
    facts = killed_and_resumed(uuid7(), datetime.now(UTC))
    append(stack, facts)
    return facts.run_id


def test_answers_are_as_fresh_as_the_log(history: HistoryServiceStub, run_id: str) -> None:
    listed = history.ListAttempts(pb.ListAttemptsRequest(parent=run_id))
    assert [attempt.attempt for attempt in listed.attempts] == [2, 1]
    assert listed.records_behind == 0
    assert dict(listed.attempts[1].receipt)["termination_reason"] == "UNKNOWN_KILL"
    assert listed.attempts[0].resumed_from.slot == 3


def test_explanation_of_a_failed_attempt(history: HistoryServiceStub, run_id: str) -> None:
    explained = history.Explain(pb.ExplainRequest(name=f"{run_id}/1"))
    assert explained.text.startswith("UNKNOWN_KILL  attempt 1 of run")
    assert "resumed at step 40 and ended with COMPLETED" in explained.text
    assert explained.markdown.startswith("# UNKNOWN")
    assert dict(explained.detail["verdict"])["headline"] == "UNKNOWN_KILL"


def test_sql_of_people_is_run_and_anything_else_is_not(history: HistoryServiceStub, run_id: str) -> None:
    query = f"select attempt, termination_reason from training_attempts where run_id = '{run_id}' order by attempt"
    pages = list(history.Query(pb.QueryRequest(sql=query)))
    assert [json.loads(row) for page in pages for row in page.rows_json] == [[1, "UNKNOWN_KILL"], [2, "COMPLETED"]]
    with pytest.raises(grpc.RpcError) as refused:
        list(history.Query(pb.QueryRequest(sql="drop table events_state")))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("victim", ["observer", "clickhouse"])
def test_death_in_the_middle_loses_and_doubles_nothing(stack: Stack, history: HistoryServiceStub, victim: str) -> None:
    first, second = (killed_and_resumed(uuid7(), datetime.now(UTC)) for _ in range(2))
    append(stack, first)
    before = stack.kill(victim)
    append(stack, second)
    stack.wait_restarted(before)
    wait_until(lambda: known(stack, first) and known(stack, second), 30, what="both runs to be projected")
    assert rebuild_and_compare(stack) == ()


def known(stack: Stack, facts: RunFacts) -> bool:
    with grpc.insecure_channel(read_endpoints(stack.state)["observer"]) as channel:
        try:
            page = HistoryServiceStub(channel).ListAttempts(pb.ListAttemptsRequest(parent=facts.run_id), timeout=5)
        except grpc.RpcError as error:
            if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND}:
                raise
            return False
        return len(page.attempts) == 2
