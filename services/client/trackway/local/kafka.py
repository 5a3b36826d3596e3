"""The stack's Kafka: one KRaft node, broker and controller, with a small heap."""

from __future__ import annotations

import asyncio
import base64
import uuid
from pathlib import Path
from string import Template

from trackway_common.errors import Unavailable
from trackway_common.kafka_topics import ensure_topics
from trackway_common.settings import KafkaSettings

from trackway.local.maven import deploy_file, require_tool
from trackway.local.probes import tcp_answers
from trackway.local.spec import BESIDE_TRAINING, ChildSpec, Plan

NAME = "kafka"
CONTROLLER = "kafka-controller"
PORTS = (NAME, CONTROLLER)
FORMAT_TIMEOUT_S = 60.0
STOP_GRACE_S = 8.0
_JAVA = ("env", "LC_ALL=C.UTF-8", "java")
"""Java reads names of folders in the locale's encoding."""
_JVM = (
    "-Xms192m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
    "-XX:MaxDirectMemorySize=64m",
)
_LOGGING = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)


def kafka_spec(plan: Plan, libs: Path) -> ChildSpec:
    """Return how to run the log's broker; it is ready when the topics are there."""
    properties = plan.folder.kafka / "server.properties"
    data = plan.folder.kafka / "data"
    java = (*_JAVA, *_JVM, *_LOGGING, "-cp", f"{libs}/*")
    address = plan.address(NAME)

    async def prepare() -> None:
        require_tool("java")
        properties.write_text(server_properties(plan, data), encoding="utf-8")
        if not (data / "meta.properties").exists():
            await _format((*java, "kafka.tools.StorageTool"), properties, plan)

    async def create_topics() -> None:
        await ensure_topics(KafkaSettings(bootstrap=address))

    return ChildSpec(
        name=NAME,
        argv=(*java, "kafka.Kafka", str(properties)),
        endpoint=address,
        niceness=BESIDE_TRAINING,
        answers=tcp_answers(address),
        before_start=prepare,
        after_answer=create_topics,
        stop_grace_s=STOP_GRACE_S,
    )


def server_properties(plan: Plan, data: Path) -> str:
    """Fill the template; it is written anew at each start, since ports may have moved."""
    template = Template(deploy_file("server.properties").read_text(encoding="utf-8"))
    return template.substitute(
        port=plan.ports[NAME], controller_port=plan.ports[CONTROLLER], data_folder=_property_value(data)
    )


def cluster_id(stack_id: str) -> str:
    """Return the stack's id as Kafka writes one: 22 characters of base64, the first no dash."""
    encoded = base64.urlsafe_b64encode(uuid.UUID(stack_id).bytes).decode().rstrip("=")
    return encoded.replace("-", "A", 1) if encoded.startswith("-") else encoded


def _property_value(path: Path) -> str:
    # log.dirs is a list: Kafka reads a comma in it as two folders.
    if "," in str(path):
        raise Unavailable(f"Kafka can't keep data below {path}: its name contains a comma; choose another --state")
    return "".join(char if char.isascii() and char != "\\" else _escaped(char) for char in str(path))


def _escaped(char: str) -> str:
    """Java reads properties as Latin-1 with UTF-16 escapes."""
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


async def _format(tool: tuple[str, ...], properties: Path, plan: Plan) -> None:
    file = plan.folder.log_of(NAME)
    with file.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(*tool, "format", "-t", cluster_id(plan.stack_id), "-c", str(properties), "--ignore-formatted"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        async with asyncio.timeout(FORMAT_TIMEOUT_S):
            code = await process.wait()
    except TimeoutError as error:
        raise Unavailable(f"Kafka's storage was not formatted in {FORMAT_TIMEOUT_S:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
    if code:
        raise Unavailable(f"Kafka's storage could not be formatted (exit {code}); {file} says why")
