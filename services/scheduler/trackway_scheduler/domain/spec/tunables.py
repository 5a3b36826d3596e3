"""Which hyperparameters have a role that the platform knows, and may change between attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from trackway_common.canonical import Json
from trackway_common.events import Tunable
from trackway_common.fields import Fields, nearest

from trackway_scheduler.domain.ladder import MOST


def tunable(fields: Fields, hyperparameters: Mapping[str, Json]) -> tuple[Tunable, ...]:
    """Read `tunable`: role → key of `hyperparameters`, whose value must fit the role."""
    section = fields.section("tunable", tuple(_FITS))
    found: list[Tunable] = []
    for role in section.names():
        key = section.text(role)
        if not key or role not in _FITS:
            continue
        if key not in hyperparameters:
            section.violation(role, f"{key!r} is not a key of hyperparameters{nearest(key, hyperparameters)}")
        elif not _FITS[role](hyperparameters[key]):
            section.violation(role, f"{key!r} must be {_MUST[role]} to be the {role.replace('_', ' ')}")
        if any(key == other.key for other in found):
            section.violation(role, f"{key!r} has another role already; one key has one role")
        found.append(Tunable(role=role, key=key))
    return tuple(found)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _is_workers(value: Json) -> bool:
    return value == 0 or _is_count(value)


def _is_rate(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


_FITS: Mapping[str, Callable[[Json], bool]] = MappingProxyType(
    {
        "micro_batch": _is_count,
        "accumulation": _is_count,
        "activation_checkpointing": lambda value: isinstance(value, bool),
        "shards": _is_count,
        "loader_workers": _is_workers,
        "learning_rate": _is_rate,
    }
)
_COUNT = "a whole number from 1"
_MUST = MappingProxyType(
    {
        "micro_batch": _COUNT,
        "accumulation": _COUNT,
        "activation_checkpointing": "true or false",
        "shards": _COUNT,
        "loader_workers": "a whole number from 0",
        "learning_rate": "a number above 0",
    }
)
