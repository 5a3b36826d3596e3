"""A broker: the one that TW_TEST_KAFKA names, else a local stack of nothing but Kafka."""

from __future__ import annotations

import os

import pytest
from trackway.local.down import down
from trackway.local.spec import StackOptions
from trackway.local.state import StateFolder
from trackway.local.up import up


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    if address := os.environ.get("TW_TEST_KAFKA"):
        yield address
        return
    folder = StateFolder(tmp_path_factory.mktemp("stack"))
    try:
        yield up(folder, StackOptions(cpus=2, only=frozenset({"kafka"}))).endpoints["kafka"]
    finally:
        down(folder)
