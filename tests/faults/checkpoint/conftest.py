"""Lets a test watch everything that the local store does to the disk."""

from __future__ import annotations

import pytest
from trackway_common.object_store import folders, local
from trackway_common.testing.watched_disk import WatchedOs, WatchedShutil


@pytest.fixture
def watch(monkeypatch):
    """Install a watcher, or replace the one before."""

    def install(watcher) -> None:
        for module in (folders, local):
            monkeypatch.setattr(module, "os", WatchedOs(watcher))
        monkeypatch.setattr(local, "shutil", WatchedShutil(watcher))

    yield install
    monkeypatch.undo()
