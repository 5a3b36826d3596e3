"""The actor's end of the Unix socket: accepts the SDK and hands its messages to a handler."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from trackway_common.rank_protocol.framing import Channel, PeerGone
from trackway_common.rank_protocol.messages import Message

logger = logging.getLogger(__name__)
Handler = Callable[[Message, Channel], None]


class SdkServer:
    """Listens until closed; one thread per connection, usually one connection."""

    def __init__(self, path: Path, handler: Handler, hung_up: Callable[[], None] = lambda: None) -> None:
        self._handler = handler
        self._hung_up = hung_up
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(os.fspath(path))
        self._listener.listen()
        self._conversations: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="sdk-acceptor", daemon=True)
        self._acceptor.start()

    def close(self, limit_s: float) -> None:
        """Stop listening, and read to their end the conversations of a trainer that is gone: its last words count."""
        # Wakes the acceptor, which ``close`` alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        for conversation in self._conversations:
            conversation.join(limit_s)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            conversation = threading.Thread(target=self._converse, args=(connection,), name="sdk", daemon=True)
            self._conversations.append(conversation)
            conversation.start()

    def _converse(self, connection: socket.socket) -> None:
        channel = Channel(connection)
        try:
            while True:
                message, descriptor = channel.receive()
                if descriptor is not None:
                    os.close(descriptor)  # Nothing that the SDK says needs one.
                self._handler(message, channel)
        except (PeerGone, ConnectionError):
            return
        except (ValueError, TypeError, OSError) as error:
            # The trainer is the user's program: what it sends can't be trusted to be right.
            logger.warning("sdk conversation dropped", extra={"why": str(error)})
        finally:
            channel.close()
            self._hung_up()
