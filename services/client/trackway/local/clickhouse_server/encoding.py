"""Compression of bodies, as ``Content-Encoding`` and ``Accept-Encoding`` name it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import lz4.frame  # type: ignore[import-untyped] # ships no types

SMALL_BYTES = 4096
"""Below it compressing costs more than it saves on a loopback."""
_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "gzip": lambda data: gzip.compress(data, compresslevel=1),
    "deflate": lambda data: zlib.compress(data, level=1),
}


def encoding_for(accepted: str, body: bytes) -> str | None:
    """Return the first encoding of an ``Accept-Encoding`` header that is known here; None: send as it is."""
    if len(body) < SMALL_BYTES:
        return None
    names = (part.partition(";")[0].strip() for part in accepted.split(","))
    return next((name for name in names if name in _ENCODERS), None)


def encode(body: bytes, encoding: str) -> bytes:
    """Compress a response body."""
    return _ENCODERS[encoding](body)


def decode(body: bytes, encoding: str) -> bytes:
    """Undo a request's ``Content-Encoding``; the web server has already undone what HTTP itself defines.

    Raises:
        ValueError: the encoding is unknown or the bytes are not in it.
    """
    if encoding in {"", "identity", "gzip", "deflate", "br", "zstd"}:
        return body
    if encoding != "lz4":
        raise ValueError(f"Content-Encoding {encoding} is not known; send lz4, gzip or deflate")
    try:
        return bytes(lz4.frame.decompress(body))
    except RuntimeError as error:
        raise ValueError(f"the body is not lz4: {error}") from error
