"""Length-prefixed JSON messages on a Unix stream socket, one of which may carry a descriptor."""

from __future__ import annotations

import socket
import struct
import threading

from trackway_common.rank_protocol.messages import Message, decode, encode

MAX_MESSAGE_BYTES = 16 * 2**20
"""Above it the peer is not one of ours."""
LENGTH = struct.Struct(">I")


class PeerGone(ConnectionError):
    """The other end closed the socket between two messages."""


class Channel:
    """One end of the conversation. Sending is safe from several threads; receiving belongs to one."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, message: Message, *, descriptor: int | None = None) -> None:
        """Send one message; a descriptor is duplicated into the peer.

        Raises:
            OSError: the peer is gone or did not read in time.
        """
        body = encode(message)
        framed = LENGTH.pack(len(body)) + body
        with self._sending:
            if descriptor is None:
                self._connection.sendall(framed)
                return
            sent = socket.send_fds(self._connection, [framed], [descriptor])
            self._connection.sendall(framed[sent:])

    def receive(self) -> tuple[Message, int | None]:
        """Wait for one message, with the descriptor that came along; the caller closes it.

        Raises:
            PeerGone: the peer closed the socket.
            ValueError: the bytes are no message of this protocol.
        """
        header, descriptor = self._receive_header()
        (length,) = LENGTH.unpack(header)
        if length > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {length} bytes is none of ours")
        return decode(self._receive_exactly(length)), descriptor

    def close(self) -> None:
        """Hang up, also on a thread that waits in ``receive``."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The peer was faster.
        self._connection.close()

    def _receive_header(self) -> tuple[bytes, int | None]:
        first, descriptors, _, _ = socket.recv_fds(self._connection, LENGTH.size, 1)
        if not first:
            raise PeerGone("the socket was closed")
        rest = self._receive_exactly(LENGTH.size - len(first))
        return first + rest, descriptors[0] if descriptors else None

    def _receive_exactly(self, length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            part = self._connection.recv(min(length - len(received), 2**20))
            if not part:
                raise PeerGone(f"the socket was closed inside a message, after {len(received)} of {length} bytes")
            received += part
        return bytes(received)
