"""How numbers, times and names read; the same in timelines, explanations and lists."""

from __future__ import annotations

from datetime import UTC, datetime

from trackway_common.events import CheckpointRef

LATEST_MS = 9_000_000_000_000
"""Year 2255; ClickHouse's DateTime64 ends a little later."""
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""What a time field holds that its writer left empty."""


def moment(at: datetime | None) -> datetime | None:
    """The time, or None when its writer left it empty."""
    return at if at is not None and at > NEVER else None


def time_of_ms(at_ms: int) -> datetime:
    """Time of milliseconds since 1970, brought within 1970 to 2255: a writer's clock may say anything."""
    return datetime.fromtimestamp(min(max(at_ms, 0), LATEST_MS) / 1000, UTC)


def checkpoint_name(ref: CheckpointRef) -> str:
    """``s000000040-e0001-1a2b3c4d``, as people and folders name it."""
    return f"s{ref.step:09d}-e{ref.epoch:04d}-{ref.nonce}"


def short_id(identifier: str) -> str:
    """First and last part of a UUID; two runs of one minute differ only in the last."""
    return f"{identifier[:8]}…{identifier[-4:]}" if len(identifier) == 36 else identifier


def short_digest(digest: str | None) -> str:
    """``sha256:1a2b3c4d5e6f``; a dash where there is none."""
    kind, _, value = (digest or "").partition(":")
    return f"{kind}:{value[:12]}" if value else "-"


def seconds_text(seconds: float) -> str:
    """``850 ms``, ``4.2 s``, ``2 m 05 s``, ``3 h 20 m``, ``2 d 4 h``."""
    if seconds < 0:
        return "-" + seconds_text(-seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def bytes_text(size_bytes: int) -> str:
    """``512 B``, ``3.4 MiB``."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """``1 step``, ``2 steps``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def clock_text(at: datetime) -> str:
    """Time of day to the millisecond, UTC."""
    return at.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]


def date_text(at: datetime) -> str:
    """``2026-11-20 14:03:07 UTC``."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def number_text(value: float) -> str:
    """Up to six significant digits, no needless zeros."""
    return f"{value:.6g}"


def amount_text(amount: float) -> str:
    """Money: ``12.50``, ``0.0063``, ``2.5e-05``; small amounts keep two digits."""
    return f"{amount:.2f}" if amount >= 1 or amount == 0 else f"{amount:.2g}"


def one_line(text: str, limit: int) -> str:
    """First line, cut with an ellipsis."""
    first = text.strip().splitlines()[0].strip() if text.strip() else ""
    more = len(text.strip().splitlines()) > 1
    return first if len(first) <= limit and not more else first[: limit - 1].rstrip() + "…"
