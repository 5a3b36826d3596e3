"""Who calls."""

from __future__ import annotations

from typing import Any

ACTOR_KEY = "trackway-actor"
ANONYMOUS = "anonymous"
_MAX_LENGTH = 200


def caller_of(context: Any) -> str:
    """Return the caller: the name in its certificate, else what it says of itself, else anonymous."""
    certified = context.auth_context().get("x509_common_name", ())
    if certified:
        return str(certified[0].decode(errors="replace"))[:_MAX_LENGTH]
    for key, value in context.invocation_metadata() or ():
        if key == ACTOR_KEY and isinstance(value, str) and value.strip():
            return value.strip()[:_MAX_LENGTH]
    return ANONYMOUS
