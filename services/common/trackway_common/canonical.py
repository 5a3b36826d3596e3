"""Canonical JSON (RFC 8785) and the digests made from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from trackway_common.ids import Digest

MAX_SAFE_INTEGER = 2**53 - 1
"""Above it a JSON number is no longer exact in every reader (RFC 8785 §3.2.2.3)."""

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def canonical_json(value: Json) -> bytes:
    """Return the one byte form of a JSON value.

    Raises:
        ValueError: an integer beyond 2^53 - 1 in size, NaN, an infinity, a key that is no string or a lone surrogate.
    Source: RFC 8785; numbers as ECMAScript prints them, keys ordered by UTF-16 code units.
    """
    return "".join(_parts(value, "$")).encode("utf-8")


def digest_bytes(data: bytes) -> Digest:
    """``sha256:<hex>`` of the bytes."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def digest(value: Json) -> Digest:
    """``sha256:<hex>`` of the value's canonical JSON."""
    return digest_bytes(canonical_json(value))


def _parts(value: Json, path: str) -> list[str]:
    match value:
        case None | True | False:
            return [json.dumps(value)]
        case str():
            return [json.dumps(value, ensure_ascii=False)]
        case int():
            return [_integer(value, path)]
        case float():
            return [_number(value, path)]
        case Mapping():
            return _object(value, path)
        case Sequence():
            return ["[", *_joined([_parts(item, f"{path}[{i}]") for i, item in enumerate(value)]), "]"]
    raise ValueError(f"{path}: {type(value).__name__} has no JSON form")


def _object(value: Mapping[str, Json], path: str) -> list[str]:
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"{path}: key {key!r} is not a string; quote it")
    ordered = sorted(value, key=lambda key: key.encode("utf-16-be"))
    members = [[json.dumps(key, ensure_ascii=False), ":", *_parts(value[key], f"{path}.{key}")] for key in ordered]
    return ["{", *_joined(members), "}"]


def _joined(groups: list[list[str]]) -> list[str]:
    parts: list[str] = []
    for i, group in enumerate(groups):
        parts.extend(group if i == 0 else [",", *group])
    return parts


def _integer(value: int, path: str) -> str:
    if abs(value) > MAX_SAFE_INTEGER:
        raise ValueError(f"{path}: {value} is beyond 2^53 and would lose digits; write it as a string")
    return str(value)


def _number(value: float, path: str) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{path}: {value} has no JSON form")
    if value == 0:
        return "0"
    digits, _, exponent_text = repr(value).partition("e")
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent_text or 0)
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    significant = significant.rstrip("0")
    return sign + _ecmascript(significant, point)


def _ecmascript(digits: str, point: int) -> str:
    """Lay out significant digits with the decimal point after ``point`` of them (ECMA-262, Number::toString)."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
