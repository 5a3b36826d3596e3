"""Runbooks: there is one for whatever can happen, and every command in them is one that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trackway_common.events import TerminationReason
from trackway_common.reasons import policy_of
from trackway_common.runbooks import RUN_TOKENS, WITHOUT, budget_line, runbook_path

from tests.support.command_lines import RUNBOOKS, commands_of, parse_command

REASONS = tuple(reason for reason in TerminationReason if reason not in WITHOUT)
BOOKS = sorted(path for path in RUNBOOKS.glob("*.md") if path.name != "README.md")
CHAPTERS = ("What it means", "How Trackway knows", "What it did", "First commands", "Causes and fixes", "Prevent it")


def test_there_is_a_runbook_for_whatever_can_happen_and_no_other() -> None:
    expected = {Path(runbook_path(token)).name for token in (*REASONS, *RUN_TOKENS)}
    assert {book.name for book in BOOKS} == expected
    assert {runbook_path(reason) for reason in WITHOUT} == {""}


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_every_command_is_one_that_the_command_line_takes(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "FOLDER").mkdir()
    monkeypatch.chdir(tmp_path)
    text = book.read_text()
    assert len(commands_of(text)) >= 2
    for line in (*commands_of(text), *re.findall(r"`(trackway [^`]+)`", text)):
        parse_command(line)


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_every_runbook_has_all_chapters(book: Path) -> None:
    text = book.read_text()
    assert text.startswith(f"# {book.stem.upper()}\n")
    assert [chapter for chapter in CHAPTERS if chapter not in text] == []


@pytest.mark.parametrize("reason", REASONS)
def test_the_budget_that_a_runbook_names_is_the_table_s(reason: TerminationReason) -> None:
    assert budget_line(policy_of(reason)) in (RUNBOOKS / f"{reason.lower()}.md").read_text()


def test_the_index_has_a_line_for_each() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    expected = [f"{token.lower()}.md" for token in (*REASONS, *RUN_TOKENS)]
    assert re.findall(r"\]\((\w+\.md)\)", index) == expected
