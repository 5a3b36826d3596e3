"""Every service alone, with settings from its environment, on parts that speak TLS and ask who calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from trackway_common.codec import encode_measurement
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog
from trackway_common.events import DatasetRegistered, RankHeartbeat, TelemetryBatch
from trackway_common.fact_reader import FactReader
from trackway_common.ids import uuid7
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.topics import RUNS, SIGNALS, TELEMETRY

from tests.support.certificates import Authority
from tests.support.secure_broker import HASHED_PASSWORD, OPERATOR, PASSWORD, SecureBroker, by_password, secure_broker
from tests.support.secure_cluster import (
    CALLER,
    KNOW_THEIR_CLIENTS,
    SERVICES,
    STOP_S,
    UP_S,
    SecureCluster,
    Service,
    secure_cluster,
    start,
)

SERVED = {
    "scheduler": ("RunService", "BlobService", "DatasetService", "PoolService", "DirectoryService"),
    "checkpointer": ("CheckpointService",),
    "evaluator": ("EvaluationService",),
    "observer": ("HistoryService",),
    "trainer-agent": ("AgentService",),
}
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("broker"), authority) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, broker: SecureBroker
) -> Iterator[SecureCluster]:
    with secure_cluster(tmp_path_factory.mktemp("cluster"), authority, broker) as running:
        yield running


async def test_the_log_works_over_sasl_and_tls(broker: SecureBroker) -> None:
    log = KafkaEventLog(broker.settings())
    offset = await log.append(SIGNALS, 0, b"k", b"over tls", ())
    async for batch in log.tail(SIGNALS, {0: offset}):
        if batch:
            assert batch[0].value == b"over tls"
            break
    await log.close()


async def test_a_wrong_password_is_unavailable(broker: SecureBroker) -> None:
    log = KafkaEventLog(broker.settings(password="wrong"))
    with pytest.raises(Unavailable, match="does not answer over SASL_SSL"):
        await log.append(SIGNALS, 0, b"k", b"v", ())
    await log.close()


async def test_only_its_owner_appends_to_a_topic(broker: SecureBroker) -> None:
    log = KafkaEventLog(broker.settings("checkpointer"))
    before = await log.end_offsets(RUNS)
    with pytest.raises(Unavailable, match=f"may not append to {RUNS}; grant it WRITE"):
        await log.append(RUNS, 0, b"k", b"forged", ())
    assert await log.end_offsets(RUNS) == before
    await log.close()


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_serves_over_tls_and_not_without(cluster: SecureCluster, name: str) -> None:
    assert cluster.health(name, cluster.credentials()) == HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError):
        cluster.health(name, None)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_says_what_it_serves(cluster: SecureCluster, name: str) -> None:
    own = {f"trackway_proto.v1.{service}" for service in SERVED[name]}
    assert cluster.reflected(name) == own | {"grpc.health.v1.Health", REFLECTION}


@pytest.mark.parametrize("name", SERVICES)
def test_a_nameless_client_is_refused_where_one_has_to_be_known(cluster: SecureCluster, name: str) -> None:
    nameless = grpc.ssl_channel_credentials(cluster.authority.read_bytes())
    if name in KNOW_THEIR_CLIENTS:
        with pytest.raises(grpc.RpcError):
            cluster.health(name, nameless)
    else:
        assert cluster.health(name, nameless) == HealthCheckResponse.SERVING


async def test_the_command_line_works(cluster: SecureCluster, broker: SecureBroker, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("some lines\n")
    taken = cluster.cli("dataset", "snapshot", "lines", str(tmp_path), "-o", "json")
    assert taken.code == 0, taken.err
    digest = json.loads(taken.out)["manifest_digest"]
    assert [found["manifest_digest"] for found in rows(cluster, "dataset", "list")] == [digest]
    assert [pool["reachable"] for pool in rows(cluster, "pool", "list")] == [True]
    assert await who_registered(KafkaEventLog(broker.settings()), digest) == CALLER
    [counted] = rows(cluster, "sql", "select count() as facts from events")
    assert counted["facts"] >= 1


async def test_the_watch_hears_and_speaks(cluster: SecureCluster, broker: SecureBroker) -> None:
    """A rank that falls silent becomes a signal: Faust consumed one topic and wrote another."""
    log = KafkaEventLog(broker.settings())
    silent: list[str] = []

    def signalled() -> bool:
        # Faust begins at the end of the topic, so a heartbeat before it joined its group is never heard.
        return {row["run_id"] for row in rows(cluster, "sql", "select run_id from signals")} & set(silent) != set()

    async with asyncio.timeout(UP_S):
        while not await asyncio.to_thread(signalled):
            silent.append(uuid7())
            heartbeat = RankHeartbeat(at_ms=1, last_step=1)
            batch = TelemetryBatch(run_id=silent[-1], attempt=1, epoch=1, rank=0, heartbeat=heartbeat)
            await log.append(TELEMETRY, 0, silent[-1].encode(), encode_measurement(batch), ())
    await log.close()


def test_what_can_never_work_is_said_in_one_line(
    broker: SecureBroker, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    good = by_password(broker, OPERATOR) | {"TRACKWAY_STORE__URL": tmp_path.as_uri(), "TRACKWAY_STATE": str(tmp_path)}
    good["TRACKWAY_RAY__ADDRESS"] = "127.0.0.1:1"
    mistakes = {
        "evaluator": ("TRACKWAY_KAFKA__SASL_PASSWORD", "loose-harbour"),
        "checkpointer": ("TRACKWAY_KAFKA__CA_FILE", str(stranger.certificate)),
        "trainer-agent": ("TRACKWAY_KAFKA__SASL_MECHANISM", "SCRAM-SHA-256"),
    }
    started = [start(tmp_path, name, "127.0.0.1:0", good | {v: wrong}) for name, (v, wrong) in mistakes.items()]
    for service in started:
        assert service.process.wait(UP_S) == 1
        [line] = service.log.read_text().splitlines()
        said = json.loads(line)
        assert said["level"] == "error"
        assert mistakes[service.name][0] in said["error"]
        assert "harbour" not in line


def test_sigterm_ends_each_service_cleanly(cluster: SecureCluster, broker: SecureBroker) -> None:
    """The last one: nothing runs after it."""
    with_broker = [service for service in cluster.services if service.name not in {"scheduler", "observer"}]
    assert stopped(with_broker) == dict.fromkeys(("trainer-agent", "checkpointer", "evaluator"), 0)
    with broker.hung():
        assert stopped([cluster.service("scheduler"), cluster.service("observer")]) == {"scheduler": 0, "observer": 0}
    for service in cluster.services:
        lines = service.log.read_text()
        assert "Traceback" not in lines
        assert "\x1b" not in lines, "colours and cursors are for terminals"
        assert PASSWORD not in lines
        assert HASHED_PASSWORD not in lines


def stopped(services: list[Service]) -> dict[str, int]:
    """Exit codes after SIGTERM."""
    for service in services:
        service.process.terminate()
    return {service.name: service.process.wait(STOP_S) for service in services}


def rows(cluster: SecureCluster, *command: str) -> list[dict[str, object]]:
    answer = cluster.cli(*command, "-o", "json")
    assert answer.code == 0, answer.err
    found: list[dict[str, object]] = json.loads(answer.out)
    return found


async def who_registered(log: EventLog, digest: str) -> str:
    """The actor of the commit that registered a dataset, from the broker itself."""
    try:
        async for batch in FactReader(log, RUNS).read():
            for judged in batch:
                for fact in judged.commit.facts:
                    if isinstance(fact, DatasetRegistered) and fact.manifest_digest == digest:
                        return judged.commit.actor
    finally:
        await log.close()
    raise AssertionError
