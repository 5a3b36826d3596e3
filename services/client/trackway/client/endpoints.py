"""Where a client begins: the scheduler's host:port."""

from __future__ import annotations

import re
from pathlib import Path

from trackway_common.errors import CommandRejected, FieldViolation, Unavailable

from trackway.local.state import read_endpoints, state_folder

_ENDPOINT = re.compile(r"[^\s:/]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")


def scheduler_endpoint(endpoint: str, state: Path | None) -> str:
    """Return the endpoint as given, else that of the local stack in the state folder.

    Raises:
        CommandRejected: it is no host:port.
        Unavailable: no stack runs there.
    """
    if endpoint:
        return _checked(endpoint)
    found = read_endpoints(state).get("scheduler", "")
    if not found:
        raise Unavailable(
            f"no local stack runs in {state_folder(state).root}; start one with `trackway up`, "
            "or name a scheduler with --endpoint host:port or TRACKWAY_ENDPOINT"
        )
    return found


def _checked(endpoint: str) -> str:
    if _ENDPOINT.fullmatch(endpoint):
        return endpoint
    description = f"{endpoint!r} is no address; write host:port, such as 127.0.0.1:7420"
    raise CommandRejected(description, violations=(FieldViolation(field="endpoint", description=description),))
