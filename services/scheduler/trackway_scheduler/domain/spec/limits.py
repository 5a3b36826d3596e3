"""The spec's own words on how long things may take, and on losses that are no numbers."""

from __future__ import annotations

from datetime import datetime

from trackway_common.events import Limits
from trackway_common.fields import Fields

from trackway_scheduler.domain.spec.parts import word

LONGEST_S = 366 * 86_400.0
_KEYS = ("wall_time_s", "deadline", "stall_s", "first_step_s")


def limits(fields: Fields) -> Limits | None:
    """Read `limits`; None where there are none."""
    if not fields.has("limits"):
        return None
    section = fields.section("limits", _KEYS)
    return Limits(
        wall_time_s=_seconds(section, "wall_time_s", low=1.0),
        deadline=_moment(section) if section.kind("deadline") == "text" else None,
        deadline_s=_seconds(section, "deadline", low=1.0) if section.kind("deadline") != "text" else None,
        stall_s=_patience(section, "stall_s"),
        first_step_s=_patience(section, "first_step_s"),
    )


def non_finite_loss(fields: Fields) -> str:
    """Read `numerics`: what a loss that is NaN or infinite does."""
    return word(fields.section("numerics", ("non_finite_loss",)), "non_finite_loss", ("fail", "ignore"), "fail")


def _seconds(section: Fields, key: str, *, low: float) -> float | None:
    return section.number(key, low, low=low, high=LONGEST_S) if section.has(key) else None


def _patience(section: Fields, key: str) -> float | None:
    """0 is for ever; below a second a busy machine looks like a hang."""
    seconds = _seconds(section, key, low=0.0)
    if seconds is not None and 0 < seconds < 1:
        section.violation(key, f"is {seconds:g}; must be 0, for no limit, or at least 1 second")
    return seconds


def _moment(section: Fields) -> datetime | None:
    written = section.text("deadline")
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        example = "such as 2026-12-24T18:00:00Z, or a number of seconds after the submission"
        section.violation("deadline", f"{written!r} must be a time with its zone (RFC 3339), {example}")
        return None
    return moment
