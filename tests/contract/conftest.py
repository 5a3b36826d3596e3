"""The logs under contract: in memory, and on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trackway_common.event_log import InMemoryEventLog
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings

from tests.support.stack import running_stack


@pytest.fixture(scope="session")
def broker(tmp_path_factory) -> Iterator[str]:
    """Address of a broker of the contract suite's own."""
    for stack in running_stack(tmp_path_factory.mktemp("broker"), only=frozenset({"kafka"})):
        yield stack.kafka


@pytest.fixture(params=["memory", "kafka"])
async def log(request):
    if request.param == "kafka":
        made = KafkaEventLog(KafkaSettings(bootstrap=request.getfixturevalue("broker")))
    else:
        made = InMemoryEventLog()
    yield made
    await made.close()
