"""The five services as processes of their own on parts that are secured as clusters secure them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from trackway.local.ports import choose_ports

from tests.ray_head import ray_head
from tests.support.certificates import Authority, Identity
from tests.support.read_model import ReadModelServer
from tests.support.secure_broker import SecureBroker, by_certificate, by_hashed_password, by_password
from tests.support.stack import TRACKWAY, Answer, wait_until
from tests.support.tls_front import tls_in_front

SERVICES = ("scheduler", "checkpointer", "evaluator", "observer", "trainer-agent")
KNOW_THEIR_CLIENTS = frozenset({"scheduler", "observer"})
"""They ask for a client certificate; the others only show their own."""
CALLER = "ada"
"""Common name of the client's certificate."""
UP_S = 60.0
STOP_S = 10.0
CATALOGUE = Path(__file__).parents[2] / "services/client/trackway/local/catalogue.yaml"

Environment = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One that was started."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureCluster:
    """All five, and a client that they know."""

    services: tuple[Service, ...]
    authority: Path
    client: Identity
    folder: Path

    def service(self, name: str) -> Service:
        return next(service for service in self.services if service.name == name)

    def health(self, name: str, credentials: grpc.ChannelCredentials | None) -> int:
        """What it answers to a health check; raises grpc.RpcError when it does not."""
        endpoint = self.service(name).endpoint
        made = grpc.secure_channel(endpoint, credentials) if credentials else grpc.insecure_channel(endpoint)
        with made as channel:
            return int(health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5).status)

    def reflected(self, name: str) -> set[str]:
        """The gRPC services that it says it has."""
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        with grpc.secure_channel(self.service(name).endpoint, self.credentials()) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            [answer] = stub.ServerReflectionInfo(asked, timeout=5)
        return {service.name for service in answer.list_services_response.service}

    def credentials(self) -> grpc.ChannelCredentials:
        """Of the client that they know."""
        return grpc.ssl_channel_credentials(
            self.authority.read_bytes(), self.client.key.read_bytes(), self.client.certificate.read_bytes()
        )

    def cli(self, *arguments: str) -> Answer:
        """Run the command line with nothing but the variables that the manual names."""
        tls = {"CA": self.authority, "CERT": self.client.certificate, "KEY": self.client.key}
        environment = _bare() | {"TRACKWAY_ENDPOINT": self.service("scheduler").endpoint}
        environment |= {f"TRACKWAY_RPC__{name}_FILE": str(file) for name, file in tls.items()}
        command = [str(TRACKWAY), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)


@contextmanager
def secure_cluster(folder: Path, authority: Authority, broker: SecureBroker) -> Iterator[SecureCluster]:
    """Run it until the block ends; inside, every service says that it serves."""
    with ExitStack() as parts:
        read_model = ReadModelServer(folder / "clickhouse")
        read_model.start()
        parts.callback(read_model.stop)
        clickhouse = parts.enter_context(tls_in_front(read_model.settings().url, authority.issue("clickhouse")))
        shared, own = _shared(folder, authority), _own(broker, authority, clickhouse)
        ports = choose_ports(SERVICES, {})

        def started(name: str, more: Environment) -> Service:
            service = start(folder, name, f"127.0.0.1:{ports[name]}", shared | own[name] | more)
            parts.callback(_end, service)
            return service

        services = [started(name, {}) for name in SERVICES if name != "trainer-agent"]
        # Meanwhile the others start.
        ray = parts.enter_context(ray_head(cpus=2))
        services.append(started("trainer-agent", ray.environment | {"TRACKWAY_RAY__ADDRESS": ray.address}))
        cluster = SecureCluster(
            services=tuple(services), authority=authority.certificate, client=authority.issue(CALLER), folder=folder
        )
        for name in SERVICES:
            wait_until(lambda name=name: _serves(cluster, name), UP_S, what=f"{name} to serve")
        yield cluster


def start(folder: Path, name: str, endpoint: str, environment: Mapping[str, str]) -> Service:
    """Start one service with this environment and nothing else."""
    file = folder / f"{name}.log"
    module = f"trackway_{name.replace('-', '_')}"
    with file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            env=_bare() | {"TRACKWAY_RPC__LISTEN": endpoint} | dict(environment),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    return Service(name=name, process=process, log=file, endpoint=endpoint)


def _shared(folder: Path, authority: Authority) -> Environment:
    """What every service is told."""
    identity = authority.issue("service")
    return {
        "TRACKWAY_STATE": str(folder / "state"),
        "TRACKWAY_STORE__URL": (folder / "objects").as_uri(),
        "TRACKWAY_RPC__CERT_FILE": str(identity.certificate),
        "TRACKWAY_RPC__KEY_FILE": str(identity.key),
    }


def _own(broker: SecureBroker, authority: Authority, clickhouse: str) -> dict[str, Environment]:
    """What each service is told: each of Kafka's ways at least once."""
    known = {"TRACKWAY_RPC__CLIENT_CA_FILE": str(authority.certificate)}
    read_model = {"TRACKWAY_CLICKHOUSE__URL": clickhouse, "TRACKWAY_CLICKHOUSE__CA_FILE": str(authority.certificate)}
    return {
        "scheduler": by_password(broker, "scheduler") | known | {"TRACKWAY_COMPUTE_CATALOGUE": str(CATALOGUE)},
        "trainer-agent": by_password(broker, "trainer-agent"),
        "checkpointer": by_password(broker, "checkpointer"),
        "evaluator": by_certificate(broker, authority.issue("evaluator")),
        "observer": by_hashed_password(broker, "observer") | known | read_model | {"TRACKWAY_WATCH__HEARTBEAT_S": "1"},
    }


def _bare() -> Environment:
    return {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ} | {
        "OMP_NUM_THREADS": "1"
    }


def _serves(cluster: SecureCluster, name: str) -> bool:
    service = cluster.service(name)
    assert service.process.poll() is None, f"{name} ended: {service.log.read_text()}"
    try:
        return cluster.health(name, cluster.credentials()) == health_pb2.HealthCheckResponse.SERVING
    except grpc.RpcError:
        return False


def _end(service: Service) -> None:
    if service.process.poll() is None:
        service.process.kill()
        service.process.wait()
