"""A broker as clusters secure theirs: passwords over TLS, hashed and plain ones, client certificates, access lists."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr
from trackway.local.maven import ensure_jars, libs_folder
from trackway.local.ports import choose_ports
from trackway_common.settings import KafkaSettings

from tests.support.certificates import Authority, Identity
from tests.support.stack import wait_until
from tests.support.topic_rights import grant

OPERATOR = "operator"
"""May do anything; every other user what ``topic_rights`` grants."""
WITH_PASSWORD = ("scheduler", "trainer-agent", "checkpointer")
WITH_HASHED_PASSWORD = "observer"
WITH_CERTIFICATE = "evaluator"
PASSWORD = "quiet-harbour"
HASHED_PASSWORD = "loud-harbour"
PRINCIPALS = {name: f"User:{name}" for name in (*WITH_PASSWORD, WITH_HASHED_PASSWORD)} | {
    WITH_CERTIFICATE: f"User:CN={WITH_CERTIFICATE}"
}
UP_S = 60.0
PORTS = ("SASL", "MUTUAL", "INSIDE", "CONTROLLER")

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_JVM = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureBroker:
    """How to reach it."""

    bootstrap: str
    """Wants a password, over TLS."""
    mutual: str
    """Wants a client certificate."""
    authority: Path
    process: subprocess.Popen[bytes]

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Inside, it keeps its connections and answers nothing, as one behind a broken network does."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def settings(self, user: str = OPERATOR, password: str = PASSWORD) -> KafkaSettings:
        """What the environment of ``by_password`` says."""
        return KafkaSettings(
            bootstrap=self.bootstrap,
            security_protocol="SASL_SSL",
            sasl_username=user,
            sasl_password=SecretStr(password),
            ca_file=self.authority,
        )


def by_password(broker: SecureBroker, user: str, password: str = PASSWORD) -> dict[str, str]:
    """The environment for a password over TLS."""
    return _environment(
        BOOTSTRAP=broker.bootstrap,
        SECURITY_PROTOCOL="SASL_SSL",
        SASL_USERNAME=user,
        SASL_PASSWORD=password,
        CA_FILE=str(broker.authority),
    )


def by_hashed_password(broker: SecureBroker, user: str) -> dict[str, str]:
    """The environment for a password that is never sent."""
    return by_password(broker, user, HASHED_PASSWORD) | _environment(SASL_MECHANISM="SCRAM-SHA-512")


def by_certificate(broker: SecureBroker, identity: Identity) -> dict[str, str]:
    """The environment for a client certificate."""
    return _environment(
        BOOTSTRAP=broker.mutual,
        SECURITY_PROTOCOL="SSL",
        CA_FILE=str(broker.authority),
        CERT_FILE=str(identity.certificate),
        KEY_FILE=str(identity.key),
    )


@contextmanager
def secure_broker(folder: Path, authority: Authority) -> Iterator[SecureBroker]:
    """Run one until the block ends; inside, it answers, has the topics and knows who may do what."""
    ensure_jars(libs_folder())
    ports = choose_ports(PORTS, {})
    config = folder / "server.properties"
    config.write_text(_properties(folder, ports, authority))
    java = [*_JVM, "-cp", f"{libs_folder()}/*"]
    scram = f"SCRAM-SHA-512=[name={WITH_HASHED_PASSWORD},password={HASHED_PASSWORD}]"
    format_storage = ["kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(config), "--add-scram", scram]
    subprocess.run([*java, *format_storage], check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    broker = SecureBroker(
        bootstrap=f"127.0.0.1:{ports['SASL']}",
        mutual=f"127.0.0.1:{ports['MUTUAL']}",
        authority=authority.certificate,
        process=process,
    )
    try:
        wait_until(lambda: _listens(broker.bootstrap), UP_S, what="the broker to listen")
        _create_topics(broker)
        grant(broker.settings(), PRINCIPALS)
        yield broker
    finally:
        process.kill()
        process.wait()


def _properties(folder: Path, ports: dict[str, int], authority: Authority) -> str:
    identity = authority.issue("broker")
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in (OPERATOR, *WITH_PASSWORD))
    outside = ",".join(f"{name}://127.0.0.1:{ports[name]}" for name in ("SASL", "MUTUAL", "INSIDE"))
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{ports["CONTROLLER"]}
listeners={outside},CONTROLLER://127.0.0.1:{ports["CONTROLLER"]}
advertised.listeners={outside}
listener.security.protocol.map=SASL:SASL_SSL,MUTUAL:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=INSIDE
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{OPERATOR};User:ANONYMOUS
ssl.keystore.type=PEM
ssl.keystore.location={identity.in_one_file()}
ssl.truststore.type=PEM
ssl.truststore.location={authority.certificate}
listener.name.mutual.ssl.client.auth=required
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config={_PLAIN} required {users};
listener.name.sasl.scram-sha-512.sasl.jaas.config={_SCRAM} required;
"""


def _environment(**settings: str) -> dict[str, str]:
    return {f"TRACKWAY_KAFKA__{name}": value for name, value in settings.items()}


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def _create_topics(broker: SecureBroker) -> None:
    """As an operator does, once a cluster."""
    environment = os.environ | by_password(broker, OPERATOR)
    command = [sys.executable, "-m", "trackway_common.create_topics"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
