"""Creates the log's topics on a cluster and checks those that are there; safe to repeat and to run twice at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.kafka_connection import connection_arguments, no_answer
from trackway_common.settings import KafkaSettings
from trackway_common.topics import MAX_RECORD_BYTES, TOPICS, Topic

log = logging.getLogger(__name__)

ADMIN_TIMEOUT_S = 15.0


async def ensure_topics(settings: KafkaSettings, topics: Sequence[Topic] = TOPICS) -> tuple[str, ...]:
    """Create the topics that are missing and return their names.

    Settings of a topic that exists are left as they are: an operator may have changed its retention on purpose.

    Raises:
        Unavailable: the cluster does not answer.
        CommandRejected: a topic exists with another number of partitions, which order and fencing hang on, or the
            cluster refused to create one.
    """
    admin = AIOKafkaAdminClient(**connection_arguments(settings))
    try:
        async with asyncio.timeout(ADMIN_TIMEOUT_S):
            await admin.start()
            return await _ensure(admin, topics, settings.replication_factor)
    except (KafkaError, OSError, TimeoutError) as error:
        raise no_answer(settings, error) from error
    finally:
        await _close(admin)


def topic_settings(topic: Topic, replication_factor: int) -> dict[str, str]:
    """Return the broker's settings for one topic.

    The broker stamps the time, so that a producer with a wrong clock can't shorten or stretch retention.
    """
    retention_ms = -1 if topic.retention is None else int(topic.retention.total_seconds() * 1000)
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(retention_ms),
        "retention.bytes": "-1",
        "max.message.bytes": str(MAX_RECORD_BYTES),
        "message.timestamp.type": "LogAppendTime",
        "min.insync.replicas": str(min(2, replication_factor)),
    }


async def _ensure(admin: AIOKafkaAdminClient, topics: Sequence[Topic], replication_factor: int) -> tuple[str, ...]:
    existing = {found["topic"]: len(found["partitions"]) for found in await admin.describe_topics()}
    _check_partitions(topics, existing)
    missing = [topic for topic in topics if topic.name not in existing]
    if missing:
        _check_created(await admin.create_topics([_new_topic(topic, replication_factor) for topic in missing]))
        log.info("topics created", extra={"topics": [topic.name for topic in missing]})
    return tuple(topic.name for topic in missing)


def _check_partitions(topics: Sequence[Topic], existing: dict[str, int]) -> None:
    for topic in topics:
        found = existing.get(topic.name, topic.partitions)
        if found != topic.partitions:
            raise CommandRejected(
                f"topic {topic.name} has {found} partitions and needs {topic.partitions}; "
                "partitions are fixed when a topic is created: point Trackway at another cluster or delete the topic",
                reason="TOPIC_MISMATCH",
            )


def _new_topic(topic: Topic, replication_factor: int) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=replication_factor,
        topic_configs=topic_settings(topic, replication_factor),
    )


def _check_created(response: Any) -> None:
    for name, code, *_message in response.topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            if error.retriable:
                raise Unavailable(f"topic {name} was not created yet ({error.__name__}); try again")
            raise CommandRejected(f"the cluster refused to create topic {name} ({error.__name__})", reason="REFUSED")


async def _close(admin: AIOKafkaAdminClient) -> None:
    try:
        await admin.close()
    except (KafkaError, OSError) as error:
        log.debug("admin client closed with an error", extra={"error": repr(error)})
