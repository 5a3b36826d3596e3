"""Settings of the log's topics."""

from __future__ import annotations

from trackway_common.kafka_topics import topic_settings
from trackway_common.topics import FACT_TOPICS, TOPICS


def test_facts_are_kept_for_ever_and_the_rest_is_not() -> None:
    kept = {topic.name: int(topic_settings(topic, 1)["retention.ms"]) for topic in TOPICS}
    assert {name for name, retention_ms in kept.items() if retention_ms == -1} == set(FACT_TOPICS)
    assert kept["trackway.dlq.v1"] == 30 * 24 * 3600 * 1000


def test_a_replicated_log_acknowledges_only_what_two_have() -> None:
    assert [topic_settings(TOPICS[0], copies)["min.insync.replicas"] for copies in (1, 2, 3)] == ["1", "2", "2"]
