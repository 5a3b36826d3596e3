"""The same log code on a broker that speaks SASL over TLS, as real clusters do."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from trackway.local.maven import ensure_jars, libs_folder
from trackway_common.errors import Unavailable
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.kafka_topics import ensure_topics
from trackway_common.settings import KafkaSettings
from trackway_common.topics import SIGNALS

PASSWORD = "quiet-harbour"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [made.getsockname()[1] for made in sockets]
    for made in sockets:
        made.close()
    return ports


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for the loopback, and a PEM that holds key and certificate."""
    key, cert, both = folder / "key.pem", folder / "cert.pem", folder / "both.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*new, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    both.write_text(key.read_text() + cert.read_text())
    return cert, both


def properties(folder: Path, keystore: Path, outside: int, inside: int, controller: int) -> str:
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=OUTSIDE://127.0.0.1:{outside},INSIDE://127.0.0.1:{inside},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=OUTSIDE://127.0.0.1:{outside},INSIDE://127.0.0.1:{inside}
listener.security.protocol.map=OUTSIDE:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=INSIDE
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
listener.name.outside.sasl.enabled.mechanisms=PLAIN
listener.name.outside.plain.sasl.jaas.config={PLAIN} required user_trackway="{PASSWORD}";
"""


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A broker whose outside listener wants a password over TLS."""
    folder = tmp_path_factory.mktemp("secure")
    ensure_jars(libs_folder())
    cert, keystore = certificate(folder)
    outside, inside, controller = free_ports(3)
    config = folder / "server.properties"
    config.write_text(properties(folder, keystore, outside, inside, controller))
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{libs_folder()}/*"]
    format_storage = ["kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(config)]
    subprocess.run([*java, *format_storage], check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
        try:
            yield SimpleNamespace(bootstrap=f"127.0.0.1:{outside}", ca=cert)
        finally:
            broker.kill()
            broker.wait()


def settings(secure, password: str) -> KafkaSettings:
    return KafkaSettings(
        bootstrap=secure.bootstrap,
        security_protocol="SASL_SSL",
        sasl_username="trackway",
        sasl_password=password,
        ca_file=secure.ca,
    )


async def topics_made(kafka: KafkaSettings) -> None:
    """Create the topics as soon as the broker answers."""
    async with asyncio.timeout(60):
        while True:
            try:
                await ensure_topics(kafka)
            except Unavailable:
                await asyncio.sleep(0.2)
            else:
                return


async def test_the_log_works_over_sasl_and_tls(secure):
    kafka = settings(secure, PASSWORD)
    await topics_made(kafka)
    log = KafkaEventLog(kafka)
    offset = await log.append(SIGNALS, 0, b"k", b"over tls", ())
    async for batch in log.tail(SIGNALS, {0: offset}):
        if batch:
            assert batch[0].value == b"over tls"
            break
    await log.close()


async def test_a_wrong_password_is_unavailable_and_says_so(secure):
    await topics_made(settings(secure, PASSWORD))
    log = KafkaEventLog(settings(secure, "wrong"))
    with pytest.raises(Unavailable, match="does not answer"):
        await log.append(SIGNALS, 0, b"k", b"v", ())
    await log.close()
