"""Content-addressed bytes: sends what the store does not have yet, and reads what has a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import grpc
from trackway_common.errors import Unavailable
from trackway_common.ids import Digest
from trackway_proto.v1.blob_service_pb2 import GetBlobRequest, HasBlobsRequest, PutBlobRequest
from trackway_proto.v1.blob_service_pb2_grpc import BlobServiceStub

from trackway.client.calls import LONG_S, call, in_our_terms, metadata, stream
from trackway.client.progress import Progress

CHUNK_BYTES = 1 << 20
"""The most that the service takes in one message."""
_SLOWEST_BYTES_PER_S = 1 << 20


def upload(channel: grpc.Channel, path: Path, progress: Progress) -> Digest:
    """Store a file's content and return its digest."""
    blobs = BlobServiceStub(channel)
    digest = file_digest(path)
    if digest in call(blobs.HasBlobs, HasBlobsRequest(digests=[digest])).present:
        return digest
    size_bytes = path.stat().st_size
    progress.begin("Uploading code", size_bytes)
    timeout_s = LONG_S + size_bytes / _SLOWEST_BYTES_PER_S
    with in_our_terms(timeout_s):
        stored = blobs.PutBlob(_chunks(path, progress), timeout=timeout_s, metadata=metadata())
    if stored.digest != digest:
        raise Unavailable(f"the store received {stored.digest} instead of {digest}; submit again")
    return digest


def download(channel: grpc.Channel, digest: str) -> bytes:
    """Return the bytes that have the digest.

    Raises:
        NotFound: no blob has it.
        Unavailable: what came has another digest.
    """
    chunks = stream(BlobServiceStub(channel).GetBlob, GetBlobRequest(digest=digest))
    content = b"".join(message.chunk for message in chunks)
    received = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if received != digest:
        raise Unavailable(f"{received} came for {digest}; ask again")
    return content


def file_digest(path: Path) -> Digest:
    """``sha256:<hex>`` of a file's content, read in constant memory."""
    with path.open("rb") as file:
        return Digest("sha256:" + hashlib.file_digest(file, "sha256").hexdigest())


def _chunks(path: Path, progress: Progress) -> Iterator[PutBlobRequest]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield PutBlobRequest(chunk=chunk)
            progress.advance(len(chunk))
