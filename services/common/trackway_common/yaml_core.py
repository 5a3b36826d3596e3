"""YAML read by the 1.2 core schema: ``1e-4`` is a float, ``NO`` is a string, a key stands once.

PyYAML's own resolver follows YAML 1.1, where ``no`` is false, ``1e-4`` a string and ``010`` eight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

import yaml

from trackway_common.canonical import Json
from trackway_common.errors import CommandRejected, FieldViolation

MAX_BYTES = 1 << 20
"""A run spec or pack is kilobytes; more is a file chosen by mistake."""


class _CoreLoader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call] # types-pyyaml leaves the parser untyped
            raise yaml.composer.ComposerError(None, None, "aliases are not read; write the value out", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "merge keys are not YAML 1.2", key_node.start_mark)
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not a string; quote it", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _construct_int(loader: _CoreLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text.startswith(("0o", "0x")) else int(text, 10)


def _construct_float(loader: _CoreLoader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node).lower()
    value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        raise yaml.constructor.ConstructorError(None, None, f"{node.value} is not a finite number", node.start_mark)
    return value


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
_CoreLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_CoreLoader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def load_yaml(data: bytes, *, name: str) -> Json:
    """Parse one YAML document.

    Args:
        data: the file's bytes, UTF-8, at most 1 MiB.
        name: what to call the file in an error, such as the field or path it came from.
    Raises:
        CommandRejected: too large, not UTF-8, not YAML, a duplicate or non-string key, NaN or infinity;
            the message holds line and column.
    """
    if len(data) > MAX_BYTES:
        raise _rejected(name, f"is {len(data)} bytes; at most {MAX_BYTES} are read. Is it the right file?")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _rejected(name, f"is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    try:
        loaded: Json = yaml.load(text, Loader=_CoreLoader)  # noqa: S506 - a SafeLoader with the core schema
    except yaml.MarkedYAMLError as error:
        raise _rejected(name, _marked(error)) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: an integer of thousands of digits
        raise _rejected(name, f"is not YAML: {error}") from error
    return loaded


def _marked(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"is not valid YAML{where}: {error.problem or error.context}"


def _rejected(name: str, description: str) -> CommandRejected:
    return CommandRejected(f"{name} {description}", violations=(FieldViolation(field=name, description=description),))
