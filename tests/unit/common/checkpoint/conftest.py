"""A run on the local disk, and one in memory for what needs no disk."""

from __future__ import annotations

import pytest
from trackway_common.object_store import InMemoryObjectStore, LocalObjectStore
from trackway_common.testing.checkpoints import CheckpointedRun


@pytest.fixture
def run():
    return CheckpointedRun(InMemoryObjectStore())


@pytest.fixture
def disk_run(tmp_path):
    return CheckpointedRun(LocalObjectStore(tmp_path / "objects"))
