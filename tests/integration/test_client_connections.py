"""How a client finds the services: the local stack, the directory, after a move, over TLS."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from trackway.client import TrackwayClient
from trackway.client.connections import TRAINER_AGENT, Connections
from trackway_common.errors import CommandRejected, NotFound, Unavailable
from trackway_proto.v1.agent_service_pb2 import TailLogsResponse
from trackway_proto.v1.directory_service_pb2 import ServiceEndpoint
from trackway_proto.v1.evaluation_service_pb2 import ListEvaluationsResponse
from trackway_proto.v1.pool_service_pb2 import ListPoolsResponse, Pool
from trackway_proto.v1.pool_service_pb2_grpc import PoolServiceServicer, add_PoolServiceServicer_to_server

from tests.integration.cli_harness import RUN, fake
from tests.integration.fake_trackway import FakeTrackway

__all__ = ["fake"]


@pytest.fixture
def second() -> Iterator[FakeTrackway]:
    served = FakeTrackway()
    served.start()
    yield served
    served.stop()


def _stack(folder: Path, scheduler: str) -> None:
    endpoints = {"scheduler": scheduler}
    record = {"stack_id": "s", "folder": str(folder), "ports": {}, "endpoints": endpoints, "started_at": ""}
    (folder / "stack.json").write_text(json.dumps(record))


def _service(name: str, endpoint: str, age_seconds: float = 0.5) -> ServiceEndpoint:
    return ServiceEndpoint(service=name, instance=endpoint, endpoint=endpoint, age_seconds=age_seconds)


def test_services_are_asked_where_the_directory_says(fake: FakeTrackway, second: FakeTrackway) -> None:
    fake.services = [_service("evaluator", "127.0.0.1:1", age_seconds=9), _service("evaluator", second.endpoint)]
    second.answers["ListEvaluations"] = ListEvaluationsResponse()
    with TrackwayClient(fake.endpoint) as client:
        assert list(client.evaluations()) == []
        assert list(client.evaluations()) == []
    assert len(second.requests("ListEvaluations")) == 2
    assert len(fake.requests("ListServices")) == 1
    assert fake.requests("ListEvaluations") == []


def test_without_a_directory_everything_is_asked_at_one_place(fake: FakeTrackway) -> None:
    fake.answers["ListEvaluations"] = ListEvaluationsResponse()
    with TrackwayClient(fake.endpoint) as client:
        assert list(client.evaluations()) == []
    assert len(fake.requests("ListEvaluations")) == 1


def test_a_stack_that_moved_is_found_again_by_its_state_folder(
    fake: FakeTrackway, second: FakeTrackway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACKWAY_ENDPOINT", raising=False)
    for one in (fake, second):
        one.answers["ListPools"] = ListPoolsResponse()
    _stack(tmp_path, fake.endpoint)
    with TrackwayClient(state=tmp_path) as client:
        assert list(client.pools()) == []
        fake.stop()
        _stack(tmp_path, second.endpoint)
        with pytest.raises(Unavailable):
            list(client.pools())
        assert list(client.pools()) == []
    assert len(second.requests("ListPools")) == 1


def test_a_watch_follows_a_stack_that_moves(fake: FakeTrackway, second: FakeTrackway, tmp_path: Path) -> None:
    facts = [("A", "RUNNING"), ("B", "RUNNING"), ("C", "SUCCEEDED")]
    for one in (fake, second):
        one.add_run(RUN, facts)
    fake.drops.append(2)
    _stack(tmp_path, fake.endpoint)
    seen = []
    with TrackwayClient(state=tmp_path) as client:
        for fact in client.watch(RUN):
            seen.append(fact.fact)
            _stack(tmp_path, second.endpoint)
    assert seen == ["A", "B", "C"]
    assert second.requests("WatchRun")[0].cursor == "2"


def test_logs_come_from_the_agent_that_knows_the_attempt(fake: FakeTrackway, second: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "RUNNING")])
    fake.services = [
        _service("trainer-agent", "127.0.0.1:1", 0.1),
        _service("trainer-agent", fake.endpoint, 0.2),
        _service("trainer-agent", second.endpoint, 0.3),
    ]
    second.log_lines = [TailLogsResponse(attempt=1, text="here", cursor="1")]
    with TrackwayClient(fake.endpoint) as client:
        assert [line.text for line in client.logs(RUN)] == ["here"]


def test_endpoints_are_ordered_by_when_they_were_heard_from(fake: FakeTrackway) -> None:
    listed = [(TRAINER_AGENT, "old:1", 5.0), (TRAINER_AGENT, "new:1", 1.0), ("observer", "o:1", 0.1)]
    fake.services = [_service(*service) for service in listed]
    connections = Connections(lambda: fake.endpoint, None)
    assert connections.endpoints(TRAINER_AGENT) == ("new:1", "old:1")
    assert connections.endpoints("evaluator") == (fake.endpoint,)
    connections.close()


def test_a_short_outage_of_the_service_is_not_noticed(fake: FakeTrackway) -> None:
    fake.answers["ListPools"] = ListPoolsResponse()
    with TrackwayClient(fake.endpoint) as client:
        assert list(client.pools()) == []
        fake.stop()
        starter = threading.Timer(0.3, fake.start, args=(fake.endpoint,))
        starter.start()
        assert list(client.pools()) == []
        starter.join()


def test_a_refusal_is_not_repeated(fake: FakeTrackway) -> None:
    with TrackwayClient(fake.endpoint) as client, pytest.raises(NotFound):
        client.get_run(RUN)
    assert len(fake.requests("GetRun")) == 1


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*new, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return folder


def test_tls_with_a_client_certificate(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pools(PoolServiceServicer):
        def ListPools(self, request: object, context: object) -> ListPoolsResponse:
            return ListPoolsResponse(pools=[Pool(name="pools/secure")])

    key, certificate = (certificates / "key.pem").read_bytes(), (certificates / "cert.pem").read_bytes()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_PoolServiceServicer_to_server(Pools(), server)
    secure = grpc.ssl_server_credentials([(key, certificate)], certificate, require_client_auth=True)
    endpoint = f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', secure)}"
    server.start()
    for name, file in {"CA": "cert.pem", "CERT": "cert.pem", "KEY": "key.pem"}.items():
        monkeypatch.setenv(f"TRACKWAY_RPC__{name}_FILE", str(certificates / file))
    with TrackwayClient(endpoint) as client:
        assert [pool.name for pool in client.pools()] == ["pools/secure"]
    for name in ("CERT", "KEY", "CA"):
        monkeypatch.delenv(f"TRACKWAY_RPC__{name}_FILE")
    with TrackwayClient(endpoint) as client, pytest.raises(Unavailable):
        list(client.pools())
    server.stop(None).wait()


def test_a_client_certificate_without_authority_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel would be plain."""
    monkeypatch.setenv("TRACKWAY_RPC__CERT_FILE", str(tmp_path / "cert.pem"))
    with pytest.raises(CommandRejected, match="no effect without TRACKWAY_RPC__CA_FILE"):
        TrackwayClient("127.0.0.1:1")


def test_a_missing_certificate_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKWAY_RPC__CA_FILE", str(tmp_path / "gone.pem"))
    with pytest.raises(CommandRejected, match=r"gone\.pem: No such file.*TRACKWAY_RPC__CA_FILE"):
        TrackwayClient("127.0.0.1:1")
