"""The Faust app: heartbeats in, signals out.

Faust acknowledges an event even when its handler raised, and its tables are not exact after a crash; so this holds
no table, its handlers let nothing escape, and what it publishes is advice that nobody has to act on.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator

import faust
from trackway_common.codec import CorruptRecord, decode_commit, decode_telemetry, encode_measurement
from trackway_common.events import AttemptEnded, Signal
from trackway_common.kafka_connection import connection_arguments
from trackway_common.settings import KafkaSettings
from trackway_common.topics import ATTEMPTS, FACT_PARTITIONS, SIGNALS, TELEMETRY

from trackway_observer.watch.pulses import Pulses
from trackway_observer.watch.rules import Thresholds

log = logging.getLogger(__name__)

GROUP = "trackway-watch"
JUDGE_EVERY_S = 1.0
SESSION_TIMEOUT_S = 6.0
"""The least that a broker allows (group.min.session.timeout.ms)."""


def build_app(kafka: KafkaSettings, limits: Thresholds) -> faust.App:
    """Return the app, ready to be run by a worker."""
    app = _app(kafka)
    pulses = Pulses(limits, time.monotonic, lambda: time.time_ns() // 1_000_000)
    telemetry = app.topic(TELEMETRY, **_RAW)
    attempts = app.topic(ATTEMPTS, **_RAW)
    signals = app.topic(SIGNALS, **_RAW)

    @app.agent(telemetry, name="heartbeats")  # type: ignore[untyped-decorator] # Faust ships no types
    async def heartbeats(stream: AsyncIterator[bytes]) -> None:
        async for value in stream:
            _hear(pulses, value)

    @app.agent(attempts, name="endings")  # type: ignore[untyped-decorator] # Faust ships no types
    async def endings(stream: AsyncIterator[bytes]) -> None:
        async for value in stream:
            _forget(pulses, value)

    @app.timer(interval=JUDGE_EVERY_S)  # type: ignore[untyped-decorator] # Faust ships no types
    async def judge() -> None:
        for signal in pulses.due():
            await signals.send(key=signal.run_id.encode(), value=encode_measurement(signal))
            _report(signal)

    return app


class _FolderlessApp(faust.App):  # type: ignore[misc] # Faust ships no types
    """Makes no folders for tables, as there are none: those of a killed process would stay for ever."""

    def _create_directories(self) -> None:
        pass


def _app(kafka: KafkaSettings) -> faust.App:
    return _FolderlessApp(
        GROUP,
        broker=[f"kafka://{address}" for address in kafka.bootstrap.split(",")],
        broker_credentials=_credentials(kafka),
        processing_guarantee="at_least_once",
        consumer_auto_offset_reset="latest",
        topic_partitions=FACT_PARTITIONS,
        topic_allow_declare=False,
        topic_disable_leader=True,
        store="memory://",
        table_standby_replicas=0,
        web_enabled=False,
        stream_wait_empty=False,
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_heartbeat_interval=SESSION_TIMEOUT_S / 4,
        broker_rebalance_timeout=SESSION_TIMEOUT_S,
        broker_commit_interval=1.0,
        producer_acks=-1,
        datadir=os.devnull,  # so that a Faust that makes its folders elsewhere fails at once
    )


_RAW = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}


def _hear(pulses: Pulses, value: bytes) -> None:
    try:
        pulses.hear(decode_telemetry(value))
    except CorruptRecord as error:
        log.info("heartbeat passed over", extra={"error": str(error)})


def _forget(pulses: Pulses, value: bytes) -> None:
    try:
        commit = decode_commit(value)
    except CorruptRecord as error:
        log.info("commit passed over", extra={"error": str(error)})
        return
    for fact in commit.facts:
        if isinstance(fact, AttemptEnded):
            pulses.forget(fact.run_id, fact.attempt)


def _report(signal: Signal) -> None:
    where = {"run_id": signal.run_id, "attempt": signal.attempt, "rank": signal.rank}
    log.warning("signal", extra={**where, "kind": signal.kind, "text": signal.message})


def _credentials(kafka: KafkaSettings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """The connection's arguments in Faust's words."""
    connection = connection_arguments(kafka)
    context = connection.get("ssl_context")
    if "sasl_mechanism" in connection:
        return faust.SASLCredentials(
            mechanism=connection["sasl_mechanism"],
            username=connection["sasl_plain_username"],
            password=connection["sasl_plain_password"],
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None
