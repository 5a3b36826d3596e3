"""Send a request to the commands topic."""

from __future__ import annotations

from trackway_common.clock import Clock
from trackway_common.codec import encode_request
from trackway_common.commit import Request
from trackway_common.event_log import EventLog
from trackway_common.events import RequestBody
from trackway_common.ids import IdSource
from trackway_common.partitioner import partition_of
from trackway_common.topics import COMMANDS


class RequestSender:
    """Appends requests under one sender's name."""

    def __init__(self, event_log: EventLog, sender: str, clock: Clock, ids: IdSource) -> None:
        self._log = event_log
        self._sender = sender
        self._clock = clock
        self._ids = ids

    async def send(self, body: RequestBody, *, key: str, traceparent: str = "") -> None:
        """Append one request; it may be there twice after an error.

        Raises:
            Unavailable: not acknowledged; send it again.
        """
        request = Request(
            request_id=self._ids(),
            sender=self._sender,
            sent_at=self._clock.now(),
            traceparent=traceparent,
            body=body,
        )
        encoded_key = key.encode()
        partition = partition_of(encoded_key, await self._log.partition_count(COMMANDS))
        headers = (("ce_type", b"trackway.request.v1"), ("traceparent", traceparent.encode()))
        await self._log.append(COMMANDS, partition, encoded_key, encode_request(request), headers)
