"""How far commands were carried out: a cache in the store, shared by all checkpointers.

Every checkpointer carries out every command, so any one's position serves all. Wrong or absent: from the beginning.
"""

from __future__ import annotations

import json

from trackway_common.errors import CommandRejected
from trackway_common.object_store import ObjectStore

_KEY = "checkpointer/commands.json"
_MAX_BYTES = 64 << 10


class ReadingPosition:
    """Offsets of the commands topic that all work before is done for; blocks on storage."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def load(self) -> dict[int, int]:
        """Offset by partition; empty when nothing usable is there."""
        try:
            found = json.loads(self._store.get(_KEY, limit_bytes=_MAX_BYTES))
            return {int(partition): int(offset) for partition, offset in found.items()}
        except (CommandRejected, ValueError, AttributeError, TypeError):
            return {}

    def save(self, positions: dict[int, int]) -> None:
        """Keep the offsets; may be lost by a power cut."""
        named = {str(partition): offset for partition, offset in sorted(positions.items())}
        self._store.put(_KEY, json.dumps(named).encode())
