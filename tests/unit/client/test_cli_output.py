"""Documents that any reader takes, and tables for people."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml
from trackway.cli.output import plain, print_document, show_list
from trackway.cli.tables import Column, print_details, size, text
from trackway_common.events import RunPhase

COLUMNS: tuple[Column[tuple[str, int]], ...] = (
    Column("NAME", lambda row: row[0]),
    Column("COUNT", lambda row: row[1]),
)
VALUE = {"phase": RunPhase.HELD, "loss": math.nan, "rows": ("NO", 1e-4, None, True), "text": "ä\n"}
PLAIN = {"phase": "HELD", "loss": None, "rows": ["NO", 1e-4, None, True], "text": "ä\n"}


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_read_back(output: str, load: Callable[[str], object], capsys: pytest.CaptureFixture[str]) -> None:
    print_document(output, VALUE)
    assert load(capsys.readouterr().out) == PLAIN == plain(VALUE)


def test_a_plain_table_is_aligned_and_uncoloured(capsys: pytest.CaptureFixture[str]) -> None:
    show_list("table", [("a", 1), ("longer\nname", 22)], COLUMNS, none="nothing")
    assert capsys.readouterr().out == "NAME         COUNT\na            1\nlonger name  22\n"


def test_nothing_is_said_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    show_list("table", [], COLUMNS, none="nothing")
    assert capsys.readouterr() == ("", "nothing\n")
    show_list("json", [], COLUMNS, none="nothing")
    assert json.loads(capsys.readouterr().out) == []


def test_details_leave_empty_values_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_details([("phase", "HELD"), ("reason", ""), ("message", "two\nlines")])
    assert capsys.readouterr().out == "phase    HELD\nmessage  two\n         lines\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""), (True, "yes"), (False, "no"), (0, "0"), (0.1 + 0.2, "0.3"), ([1, "a"], '[1, "a"]'),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))), "2026-01-02 02:04:05Z"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00Z"),
    ],
)  # fmt: skip
def test_values_as_people_read_them(value: object, shown: str) -> None:
    assert text(value) == shown


def test_sizes() -> None:
    assert [size(n) for n in (0, 1023, 1024, 5 << 20, 3 << 40, 5 << 50)] == [
        "0 B", "1023 B", "1.0 KiB", "5.0 MiB", "3.0 TiB", "5120.0 TiB",
    ]  # fmt: skip
