"""The log on a Kafka-compatible broker: idempotent producer, acks=all, no transactions, no groups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from trackway_common.codec import Headers
from trackway_common.errors import CorruptLog, Unavailable
from trackway_common.event_log import Record, UncertainAppend
from trackway_common.kafka_connection import connection_arguments, no_answer
from trackway_common.settings import KafkaSettings
from trackway_common.topics import MAX_RECORD_BYTES

log = logging.getLogger(__name__)

FETCH_WAIT_MS = 100
"""A partition that was just drained waits for the fetch in flight, so this bounds the read-back's tail latency."""
IDLE_MS = 200
"""Silence after which a tail yields an empty batch."""
METADATA_TIMEOUT_S = 10.0
RECONNECT_S = 0.5
STOP_LIMIT_S = 2.0


class LogTruncated(CorruptLog):
    """The broker no longer holds a position that was asked for: its retention is shorter than the reader's absence."""


class KafkaEventLog:
    """Topics of one cluster. Connects when first used."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._connection = connection_arguments(settings)
        self._producer: AIOKafkaProducer | None = None
        self._metadata: AIOKafkaConsumer | None = None
        self._counts: dict[str, int] = {}
        self._producer_lock = asyncio.Lock()
        self._metadata_lock = asyncio.Lock()
        self._retiring: set[asyncio.Task[None]] = set()

    async def partition_count(self, topic: str) -> int:
        return len(await self._partitions(topic))

    async def append(self, topic: str, partition: int, key: bytes, value: bytes, headers: Headers) -> int:
        producer = await self._started_producer()
        try:
            async with asyncio.timeout(self._settings.append_timeout_s):
                sent = await producer.send_and_wait(
                    topic, value=value, key=key, partition=partition, headers=list(headers)
                )
        except (MessageSizeTooLargeError, RecordTooLargeError) as error:
            raise Unavailable(f"{topic}: record of {len(value)} bytes is above the broker's limit") from error
        except TopicAuthorizationFailedError as error:
            self._retire(producer)
            raise Unavailable(f"this service's user may not append to {topic}; grant it WRITE there") from error
        except (KafkaError, TimeoutError) as error:
            self._retire(producer)
            raise UncertainAppend(f"{topic}/{partition}: no acknowledgement ({error!r})") from error
        return int(sent.offset)

    async def end_offsets(self, topic: str) -> dict[int, int]:
        partitions = await self._partitions(topic)
        return await self._offsets("end_offsets", partitions)

    async def begin_offsets(self, topic: str) -> dict[int, int]:
        partitions = await self._partitions(topic)
        return await self._offsets("beginning_offsets", partitions)

    async def tail(self, topic: str, positions: Mapping[int, int]) -> AsyncIterator[Sequence[Record]]:
        consumer = await self._started_consumer()
        try:
            consumer.assign([TopicPartition(topic, p) for p in positions])
            for p, offset in positions.items():
                consumer.seek(TopicPartition(topic, p), offset)
            while True:
                yield await _fetch(consumer, topic)
        finally:
            await _stop_quietly(consumer)

    async def close(self) -> None:
        if self._producer is not None:
            self._retire(self._producer)
        if self._metadata is not None:
            await _stop_quietly(self._metadata)
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def _started_producer(self) -> AIOKafkaProducer:
        async with self._producer_lock:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    acks="all",
                    enable_idempotence=True,
                    compression_type="lz4",
                    max_request_size=MAX_RECORD_BYTES,
                    request_timeout_ms=int(self._settings.append_timeout_s * 1000),
                    **self._connection,
                )
                await _start(producer, self._settings)
                self._producer = producer
            return self._producer

    def _retire(self, producer: AIOKafkaProducer) -> None:
        """Stop using a producer. Its unacknowledged records stay uncertain, and its id is never used again."""
        if producer is self._producer:
            self._producer = None
            task = asyncio.get_running_loop().create_task(_stop_quietly(producer))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def _started_consumer(self) -> AIOKafkaConsumer:
        while True:
            consumer = AIOKafkaConsumer(
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=FETCH_WAIT_MS,
                max_partition_fetch_bytes=MAX_RECORD_BYTES,
                **self._connection,
            )
            try:
                await _start(consumer, self._settings)
            except Unavailable as error:
                log.info("waiting for the log", extra={"error": str(error)})
                await asyncio.sleep(RECONNECT_S)
            else:
                return consumer

    async def _partitions(self, topic: str) -> list[TopicPartition]:
        if topic not in self._counts:
            self._counts[topic] = await self._describe(topic)
        return [TopicPartition(topic, p) for p in range(self._counts[topic])]

    async def _describe(self, topic: str) -> int:
        admin = AIOKafkaAdminClient(**self._connection)
        try:
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                await admin.start()
                [found] = await admin.describe_topics([topic])
        except (KafkaError, TimeoutError, OSError) as error:
            raise no_answer(self._settings, error) from error
        finally:
            await admin.close()
        if not found["partitions"]:
            raise Unavailable(
                f"topic {topic} does not exist; `python -m trackway_common.create_topics` makes what is missing"
            )
        return len(found["partitions"])

    async def _offsets(self, which: str, partitions: list[TopicPartition]) -> dict[int, int]:
        async with self._metadata_lock:
            consumer = await self._metadata_consumer()
            try:
                async with asyncio.timeout(METADATA_TIMEOUT_S):
                    offsets = await getattr(consumer, which)(partitions)
            except (KafkaError, TimeoutError) as error:
                raise no_answer(self._settings, error) from error
        return {tp.partition: int(offset) for tp, offset in offsets.items()}

    async def _metadata_consumer(self) -> AIOKafkaConsumer:
        if self._metadata is None:
            consumer = AIOKafkaConsumer(group_id=None, enable_auto_commit=False, **self._connection)
            await _start(consumer, self._settings)
            self._metadata = consumer
        return self._metadata


async def _fetch(consumer: AIOKafkaConsumer, topic: str) -> list[Record]:
    try:
        fetched = await consumer.getmany(timeout_ms=IDLE_MS)
    except OffsetOutOfRangeError as error:
        raise LogTruncated(f"{topic}: the log no longer holds what this reader needs next ({error!r})") from error
    except UnknownTopicOrPartitionError as error:
        raise Unavailable(f"topic {topic} does not exist") from error
    except TopicAuthorizationFailedError as error:
        raise Unavailable(f"this service's user may not read {topic}; grant it READ there") from error
    return [
        Record(
            topic=topic,
            partition=tp.partition,
            offset=message.offset,
            key=message.key or b"",
            value=message.value or b"",
            headers=tuple(message.headers),
            appended_at=datetime.fromtimestamp(message.timestamp / 1000, UTC),
        )
        for tp, messages in fetched.items()
        for message in messages
    ]


async def _start(client: AIOKafkaProducer | AIOKafkaConsumer, settings: KafkaSettings) -> None:
    try:
        async with asyncio.timeout(METADATA_TIMEOUT_S):
            await client.start()
    except (KafkaError, TimeoutError, OSError) as error:
        await _stop_quietly(client)
        raise no_answer(settings, error) from error


async def _stop_quietly(client: AIOKafkaProducer | AIOKafkaConsumer) -> None:
    """Stop a client; it says goodbye to its broker, and one that hangs is not waited for."""
    stopping = asyncio.ensure_future(client.stop())
    stopping.add_done_callback(_note_failure)
    await asyncio.wait({stopping}, timeout=STOP_LIMIT_S)


def _note_failure(stopped: asyncio.Future[None]) -> None:
    if not stopped.cancelled() and (error := stopped.exception()):
        log.debug("client stopped with an error", extra={"error": repr(error)})
