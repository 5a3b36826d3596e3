"""From a URL to the store it names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.object_store.local import LocalObjectStore
from trackway_common.object_store.port import ObjectStore


def open_store(url: str) -> ObjectStore:
    """Open the store that the URL names, creating its folder.

    Raises:
        CommandRejected: the URL names a kind of store that is not supported.
    """
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise _unsupported(url)
    return LocalObjectStore(Path(unquote(parts.path)))


def _unsupported(url: str) -> CommandRejected:
    hint = "write file:///absolute/folder; only the local disk is supported"
    violation = FieldViolation(field="store.url", description=hint)
    return CommandRejected(f"no store for {url!r}: {hint}", reason="STORE_UNSUPPORTED", violations=(violation,))
