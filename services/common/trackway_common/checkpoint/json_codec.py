"""Frozen dataclasses to canonical JSON and back.

Unknown members are ignored and absent ones take their default, so that formats can grow.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from trackway_common.canonical import MAX_SAFE_INTEGER, Json, canonical_json

T = TypeVar("T")


class Malformed(ValueError):
    """The bytes are not what this kind of file holds; the message says where and why."""


def encode(record: object) -> bytes:
    """Canonical JSON of a dataclass."""
    return canonical_json(to_json(record))


def parse_canonical(data: bytes) -> dict[str, Json]:
    """Read an object from bytes that must be in canonical form.

    Raises:
        Malformed: no JSON, no object, or bytes that canonical JSON would not have.
    """
    value = parse_object(data)
    try:
        if canonical_json(value) == data:
            return value
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no canonical JSON: {error}") from error
    raise Malformed("not in canonical form: somebody else wrote or changed it")


def parse_object(data: bytes) -> dict[str, Json]:
    """Read an object from bytes whose integrity was checked otherwise; raises ``Malformed``."""
    try:
        value = json.loads(data, parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise Malformed(f"an object is needed, not {_shown(value)}")
    return value


def to_json(record: Any) -> Json:
    """JSON value of a dataclass, or of what its fields may hold."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: to_json(getattr(record, field.name)) for field in dataclasses.fields(record)}
    if isinstance(record, tuple):
        return [to_json(item) for item in record]
    if record is None or isinstance(record, str | int | float):
        return record
    raise TypeError(f"{type(record).__name__} has no place in a record")


def from_json(kind: type[T], value: object, where: str) -> T:
    """Build the dataclass; raises ``Malformed`` with the path of what is wrong."""
    if not isinstance(value, Mapping):
        raise Malformed(f"{where}: an object is needed, not {_shown(value)}")
    members = {
        name: _decoded(hint, value[name], f"{where}.{name}")
        for name, hint in _hints(cast("Hashable", kind)).items()
        if name in value
    }
    try:
        return kind(**members)
    except (TypeError, ValueError) as error:
        raise Malformed(f"{where}: {error}") from error


def _number(text: str) -> int | float:
    """A float such as 1e17 is written with all its digits and looks like an integer that no reader could hold."""
    value = int(text)
    return value if abs(value) <= MAX_SAFE_INTEGER else float(value)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decoded(hint: Any, value: object, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_json(cast("type[Any]", hint), value, where)
    if typing.get_origin(hint) is tuple:
        return _decoded_list(typing.get_args(hint)[0], value, where)
    if typing.get_origin(hint) in {types.UnionType, typing.Union}:
        return None if value is None else _decoded(_not_none(hint), value, where)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise Malformed(f"{where}: {hint.__name__} is needed, not {_shown(value)}")
    return value


def _decoded_list(hint: Any, value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Malformed(f"{where}: a list is needed, not {_shown(value)}")
    return tuple(_decoded(hint, item, f"{where}[{i}]") for i, item in enumerate(value))


def _not_none(hint: Any) -> Any:
    return next(arg for arg in typing.get_args(hint) if arg is not type(None))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
