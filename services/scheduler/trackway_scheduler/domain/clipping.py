"""Keep a refusal small enough for gRPC's trailers and for one commit, whatever the caller sent."""

from __future__ import annotations

from trackway_common.errors import CommandRejected, FieldViolation

MAX_VIOLATIONS = 12
MAX_MESSAGE = 500
MAX_DESCRIPTION = 200
MAX_FIELD = 80


def clipped(refused: CommandRejected) -> CommandRejected:
    """Return the refusal with long texts cut and surplus violations counted.

    gRPC refuses trailers above 8 KiB, and binary ones grow by a third.
    """
    kept = refused.violations[:MAX_VIOLATIONS]
    surplus = len(refused.violations) - len(kept)
    more = f" ({surplus} more violations are not listed)" if surplus else ""
    violations = tuple(
        FieldViolation(field=_cut(one.field, MAX_FIELD), description=_cut(one.description, MAX_DESCRIPTION))
        for one in kept
    )
    return CommandRejected(_cut(refused.message, MAX_MESSAGE) + more, reason=refused.reason, violations=violations)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
