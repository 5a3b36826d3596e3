"""The logs under contract."""

from __future__ import annotations

import pytest
from trackway_common.event_log import InMemoryEventLog


@pytest.fixture(params=["memory"])
async def log(request):
    made = InMemoryEventLog()
    yield made
    await made.close()
