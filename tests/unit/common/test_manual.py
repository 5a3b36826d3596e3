"""The manual of a cluster names every shared variable and every right, and none that there isn't."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel
from trackway_common.settings import ClickHouseSettings, ServiceSettings

from tests.support.topic_rights import APPENDS

MANUAL = (Path(__file__).parents[3] / "services/README.md").read_text()
OF_ONE_SERVICE = {"TRACKWAY_ENDPOINT", "TRACKWAY_COMPUTE_CATALOGUE", "TRACKWAY_RAY__ADDRESS"}


def test_every_variable_is_there() -> None:
    shared = variables(ServiceSettings) | variables(ClickHouseSettings, "CLICKHOUSE__")
    assert set(re.findall(r"TRACKWAY_[A-Z_]+", MANUAL)) == shared | OF_ONE_SERVICE


def test_every_right_is_there() -> None:
    rows = re.findall(r"^\| ([a-z-]+) \| topics `trackway\.\*`.* \| (.*) \|$", MANUAL, re.MULTILINE)
    assert {user: tuple(re.findall(r"`(.+?)`", topics)) for user, topics in rows} == APPENDS


def variables(block: type[BaseModel], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name, field in block.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= variables(kind, f"{name.upper()}__")
        else:
            found.add(f"TRACKWAY_{prefix}{name.upper()}")
    return found
