"""BlobService: content-addressed bytes in and out, in constant memory."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO, Any

from trackway_common.errors import CommandRejected, FieldViolation, NotFound
from trackway_proto.v1 import blob_service_pb2 as pb
from trackway_proto.v1.blob_service_pb2_grpc import BlobServiceServicer

from trackway_scheduler.shell.opening import Opening

MAX_BLOB_BYTES = 1 << 30
CHUNK_BYTES = 1 << 20
MAX_DIGESTS = 10_000


class BlobServicer(BlobServiceServicer):
    """Answers from the store alone: every scheduler may, active or not."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def PutBlob(  # noqa: N802 - named by the .proto file
        self, request_iterator: AsyncIterator[pb.PutBlobRequest], context: Any
    ) -> pb.PutBlobResponse:
        with tempfile.NamedTemporaryFile(prefix="trackway-blob-") as spool:
            size_bytes = await _spool(request_iterator, spool)
            digest = await asyncio.to_thread(self._opening.parts.blobs.put_file, Path(spool.name))
        return pb.PutBlobResponse(digest=digest, size_bytes=size_bytes)

    async def GetBlob(  # noqa: N802 - named by the .proto file
        self, request: pb.GetBlobRequest, context: Any
    ) -> AsyncIterator[pb.GetBlobResponse]:
        if not await asyncio.to_thread(self._opening.parts.blobs.has, request.digest):
            raise NotFound(f"there is no blob {request.digest}")
        pieces = self._opening.parts.blobs.read(request.digest)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            for chunk in _chunks(piece):
                yield pb.GetBlobResponse(chunk=chunk)

    async def HasBlobs(  # noqa: N802 - named by the .proto file
        self, request: pb.HasBlobsRequest, context: Any
    ) -> pb.HasBlobsResponse:
        if len(request.digests) > MAX_DIGESTS:
            raise _invalid("digests", f"are {len(request.digests)}; ask for at most {MAX_DIGESTS} at once")
        blobs, digests = self._opening.parts.blobs, list(request.digests)
        present = await asyncio.to_thread(lambda: [digest for digest in digests if blobs.has(digest)])
        return pb.HasBlobsResponse(present=present)


async def _spool(requests: AsyncIterator[pb.PutBlobRequest], spool: IO[bytes]) -> int:
    size_bytes = 0
    async for request in requests:
        if len(request.chunk) > CHUNK_BYTES:
            raise _invalid("chunk", f"is {len(request.chunk)} bytes; send at most {CHUNK_BYTES} in one message")
        size_bytes += len(request.chunk)
        if size_bytes > MAX_BLOB_BYTES:
            raise _invalid("chunk", f"makes the blob larger than {MAX_BLOB_BYTES} bytes; put large data in a dataset")
        await asyncio.to_thread(spool.write, request.chunk)
    await asyncio.to_thread(spool.flush)
    return size_bytes


def _chunks(piece: bytes) -> Iterator[bytes]:
    for start in range(0, len(piece), CHUNK_BYTES):
        yield piece[start : start + CHUNK_BYTES]


def _invalid(field: str, description: str) -> CommandRejected:
    return CommandRejected(f"{field} {description}", violations=(FieldViolation(field=field, description=description),))
