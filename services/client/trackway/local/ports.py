"""Ports on the loopback, chosen once a state folder."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from trackway_common.errors import Unavailable

FIRST_PORT = 20_000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
FALLBACK_END = 32_768
ATTEMPTS = 1_000
_LOOPBACK = "127.0.0.1"


def choose_ports(names: Iterable[str], earlier: Mapping[str, int]) -> dict[str, int]:
    """Return a free port for each name: the earlier one when it is still free.

    Ports lie below the kernel's ephemeral range: from inside it, a client that dials a dead server's port again and
    again sooner or later connects to itself, and then holds the port against the server's restart.

    Raises:
        Unavailable: no free port was found.
    """
    chosen: dict[str, int] = {}
    for name in names:
        before = earlier.get(name)
        keep = before is not None and before not in chosen.values() and is_free(before)
        chosen[name] = before if keep and before is not None else _free_port(set(chosen.values()))
    return chosen


def is_free(port: int) -> bool:
    """Tell whether nothing listens on the port; connections that linger after a restart don't count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _free_port(taken: set[int]) -> int:
    first, end = _range()
    for _ in range(ATTEMPTS):
        port = random.randrange(first, end)  # noqa: S311 - spreads stacks, guards nothing
        if port not in taken and is_free(port):
            return port
    raise Unavailable(f"no free port between {first} and {end}; stop something that listens there")


def _range() -> tuple[int, int]:
    try:
        end = int(EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        end = FALLBACK_END
    # Machines that made the whole range ephemeral leave no room below it.
    return (FIRST_PORT, end) if end > FIRST_PORT + ATTEMPTS else (FIRST_PORT, FALLBACK_END)
