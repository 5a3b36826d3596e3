"""A TCP port for the attempt's rendezvous, held until the trainer takes it."""

from __future__ import annotations

import secrets
import socket

FIRST, LAST = 20_000, 32_000
"""Below Linux's ephemeral ports (32768 on), so that no outgoing connection takes it in the time that
importing torch takes."""
TRIES = 200


class HeldPort:
    """A bound port that nobody else can bind while it is held."""

    def __init__(self) -> None:
        """Bind one.

        Raises:
            OSError: none of the tried ports is free.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        for attempt in range(TRIES):
            try:
                self._socket.bind(("", FIRST + secrets.randbelow(LAST - FIRST)))
                break
            except OSError:
                if attempt == TRIES - 1:
                    raise
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Let the trainer bind it."""
        self._socket.close()


def address_towards(peer: str) -> str:
    """This machine's IP address on the way to a peer; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, 9))
        return str(probe.getsockname()[0])
