"""Groups of columns as dataclasses, flattened into one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value: TypeAlias = str | int | float | bool | datetime | tuple["Value", ...] | None


def columns_of(group: DataclassInstance) -> Mapping[str, Value]:
    """Column names and values in order; groups inside are laid flat."""
    row: dict[str, Value] = {}
    for field in fields(group):
        value = getattr(group, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            row |= columns_of(value)
        else:
            row[field.name] = value
    return row
