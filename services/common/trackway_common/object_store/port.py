"""The port that checkpoints and blobs are written through, and what every adapter must keep.

Keys are relative POSIX paths. One primitive orders writers: create-if-absent of a key.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeAlias

from trackway_common.errors import CommandRejected, Unavailable

Bytes: TypeAlias = bytes | bytearray | memoryview

CHUNK_BYTES = 8 << 20
"""Piece in which large objects are read and written: large enough for the disk, small enough for a cache."""
HIDDEN_PREFIX = ".t-"
"""Names that begin so belong to writes that are not finished; no listing shows them."""
MAX_NAME_BYTES = 255


class AlreadyExists(CommandRejected):
    """Somebody created this key before; what is there was left as it is."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} exists already", reason="ALREADY_EXISTS")
        self.key = key


class StorageFull(Unavailable):
    """The store has no room for the bytes; free some, then the same call may succeed."""


class ObjectStore(Protocol):
    """Objects under keys. Every method may block on storage and raises ``Unavailable`` when storage fails.

    A method that failed may still have taken effect: read back before trying again.
    """

    def put_if_absent(self, key: str, data: Bytes) -> None:
        """Create the object, whole and durable with all its parent names when this returns.

        Raises:
            AlreadyExists: the key is taken, also when by an earlier try of the same caller.
            StorageFull: no room; nothing is left under the key.
        """
        ...

    def create(self, key: str, chunks: Iterable[Bytes], *, size_bytes: int) -> None:
        """Like ``put_if_absent`` from pieces, but the name is durable only after ``settle`` and ``anchor``.

        Raises:
            CommandRejected: the chunks do not add up to ``size_bytes``; nothing is left under the key.
        """
        ...

    def settle(self, prefix: str) -> None:
        """Make the names directly below the prefix durable (not the prefix's own name)."""
        ...

    def anchor(self, prefix: str) -> None:
        """Make the prefix's own name durable, and those of all its parents; cheap when called again."""
        ...

    def put(self, key: str, data: Bytes) -> None:
        """Replace the object; readers see the old or the new one. May be lost by a power cut: for hints only."""
        ...

    def get(self, key: str, *, limit_bytes: int | None = None) -> bytes:
        """Return the object.

        Raises:
            NotFound: no such object.
            CommandRejected: it is larger than the limit, or not a plain object (a symbolic link, a folder).
        """
        ...

    def read(self, key: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Yield the object piece by piece; raises as ``get`` does, when first advanced."""
        ...

    def size(self, key: str) -> int:
        """Size in bytes; raises as ``get`` does."""
        ...

    def names(self, prefix: str, *, start_after: str = "") -> list[str]:
        """Sorted names directly below the prefix and after ``start_after``; those with more below end in ``/``.

        An unknown prefix has no names. Names that appear or vanish meanwhile may or may not be in it.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove the object if it is there; a power cut may bring it back."""
        ...

    def move(self, prefix: str, to_prefix: str) -> None:
        """Move everything below one prefix to another, free one; on the local disk in one step.

        Raises:
            NotFound: nothing is there, perhaps because an earlier try moved it.
        """
        ...

    def delete_below(self, prefix: str) -> None:
        """Remove everything below the prefix; may stop half-way and be called again."""
        ...

    def sweep(self, prefix: str) -> None:
        """Remove what writers that died left hidden directly below the prefix, once it is an hour old."""
        ...

    def free_bytes(self) -> int | None:
        """Bytes that can still be written, None where the store has no such limit."""
        ...

    def local_path(self, key: str) -> Path | None:
        """Where the key lies as a file on this machine, None where it does not. Never write to it."""
        ...


def key_parts(key: str) -> tuple[str, ...]:
    """Split a key or prefix into its names.

    Raises:
        CommandRejected: it is absolute, leaves its root, or has a name that some store cannot hold.
    """
    parts = tuple(key.removesuffix("/").split("/"))
    for part in parts:
        if part in {"", ".", ".."} or part.startswith(HIDDEN_PREFIX):
            raise CommandRejected(f"{key!r} is not a plain relative path: {part!r} is not allowed in it")
        if "\x00" in part or "\\" in part or len(part.encode(errors="surrogatepass")) > MAX_NAME_BYTES:
            raise CommandRejected(f"{key!r} has a name that cannot be stored; use up to {MAX_NAME_BYTES} plain bytes")
    return parts


def refuse_without_conditional_create(store: ObjectStore) -> None:
    """Raise ``CommandRejected`` when the store lets a second create of one key succeed: such a store cannot fence."""
    key = f"probe/{uuid.uuid4().hex}"
    store.put_if_absent(key, b"first")
    try:
        store.put_if_absent(key, b"second")
    except AlreadyExists:
        return
    finally:
        store.delete(key)
    raise CommandRejected("this store overwrites objects that exist: it ignores conditional creates; use another one")
