"""The logs under contract: in memory, and on a real broker."""

from __future__ import annotations

import os

import pytest
from trackway_common.event_log import InMemoryEventLog
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings


@pytest.fixture(params=["memory", "kafka"])
async def log(request):
    if request.param == "kafka":
        made = KafkaEventLog(KafkaSettings(bootstrap=os.environ["TW_TEST_KAFKA"]))
    else:
        made = InMemoryEventLog()
    yield made
    await made.close()
