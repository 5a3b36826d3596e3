"""What each service may do on the log, as a cluster's operator grants it: the table of the manual, as data."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest
from trackway_common.kafka_connection import connection_arguments
from trackway_common.settings import KafkaSettings
from trackway_common.topics import ATTEMPTS, CHECKPOINTS, COMMANDS, DLQ, EVALUATIONS, RUNS, SIGNALS, TELEMETRY

EVERY_TOPIC = "trackway."
APPENDS = {
    "scheduler": (RUNS, COMMANDS),
    "trainer-agent": (ATTEMPTS, TELEMETRY, COMMANDS),
    "checkpointer": (CHECKPOINTS, COMMANDS),
    "evaluator": (EVALUATIONS, COMMANDS),
    "observer": (SIGNALS, DLQ, COMMANDS),
}
WATCH_GROUP = "trackway-watch"

_TOPIC, _GROUP = 2, 3
_LITERAL, _PREFIXED = 3, 4
_READ, _WRITE = 3, 4
_ALLOW = 3
Grant = tuple[int, str, int, str, str, int, int]


def grant(kafka: KafkaSettings, principals: dict[str, str]) -> None:
    """Give each service what it needs and nothing else.

    Args:
        kafka: of a user who may.
        principals: service → how the broker calls it.
    """
    asyncio.run(_grant(kafka, [given for name, who in principals.items() for given in _grants(name, who)]))


async def _grant(kafka: KafkaSettings, grants: list[Grant]) -> None:
    admin = AIOKafkaAdminClient(**connection_arguments(kafka))
    try:
        await admin.start()
        for given in grants:
            answer = await admin._send_request(CreateAclsRequest(*given))
            [(code, message)] = answer.creation_responses
            assert code == 0, message
    finally:
        await admin.close()


def _grants(service: str, principal: str) -> Iterator[Grant]:
    yield (_TOPIC, EVERY_TOPIC, _PREFIXED, principal, "*", _READ, _ALLOW)
    for topic in APPENDS[service]:
        yield (_TOPIC, topic, _LITERAL, principal, "*", _WRITE, _ALLOW)
    if service == "observer":
        yield (_GROUP, WATCH_GROUP, _LITERAL, principal, "*", _READ, _ALLOW)
