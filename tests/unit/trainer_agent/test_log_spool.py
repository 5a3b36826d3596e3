"""The spool behind TailLogs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trackway_common.errors import CommandRejected
from trackway_common.events import LogLine
from trackway_trainer_agent.adapters import log_spool
from trackway_trainer_agent.adapters.log_spool import LogSpool, LogSpools


def printed(record: int, text: str = "x") -> LogLine:
    return LogLine(record=record, at_ms=record, stream="stdout", text=text, step=1)


def test_lines_come_back_in_order_and_from_a_cursor(tmp_path: Path) -> None:
    spool = LogSpool(tmp_path / "a")
    for record in range(1, 6):
        spool.append(record % 2, printed(record, f"line {record} äß"))
    lines = list(spool.read())
    assert [(spooled.rank, spooled.line.text) for spooled in lines] == [(n % 2, f"line {n} äß") for n in range(1, 6)]
    assert [spooled.line.record for spooled in spool.read(lines[2].cursor)] == [4, 5]
    assert list(spool.read(lines[-1].cursor)) == []


def test_a_line_that_was_added_before_is_passed_over_also_after_a_restart(tmp_path: Path) -> None:
    first = LogSpool(tmp_path)
    for record in (1, 2):
        first.append(0, printed(record))
    again = LogSpool(tmp_path)
    for rank, record in ((0, 1), (0, 2), (0, 3), (1, 1)):
        again.append(rank, printed(record))
    assert [(spooled.rank, spooled.line.record) for spooled in again.read()] == [(0, 1), (0, 2), (0, 3), (1, 1)]


def test_half_a_line_of_a_dead_writer_hides_nothing(tmp_path: Path) -> None:
    first = LogSpool(tmp_path)
    first.append(0, printed(1))
    first.close()
    with (tmp_path / "1.jsonl").open("ab") as file:
        file.write(b'[0, 2, 3, "std')
    again = LogSpool(tmp_path)
    again.append(0, printed(2))
    assert [spooled.line.record for spooled in again.read()] == [1, 2]


def test_the_oldest_files_go_first_and_their_cursors_go_on_at_the_oldest_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_spool, "FILE_BYTES", 200)
    monkeypatch.setattr(log_spool, "FILES_KEPT", 3)
    spool = LogSpool(tmp_path)
    spool.append(0, printed(1))
    (first,) = spool.read()
    for record in range(2, 101):
        spool.append(0, printed(record))
    assert len(list(tmp_path.iterdir())) <= 3
    kept = [spooled.line.record for spooled in spool.read(first.cursor)]
    assert kept == list(range(kept[0], 101))
    assert kept[0] > 1


def test_a_foreign_cursor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandRejected, match="no cursor"):
        list(LogSpool(tmp_path).read("yesterday"))


def test_old_attempts_are_forgotten(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_spool, "ATTEMPTS_KEPT", 2)
    spools = LogSpools(tmp_path)
    for attempt in (1, 2, 3):
        spools.of("run", attempt).append(0, printed(1))
        os.utime(tmp_path / "run" / str(attempt), (attempt, attempt))
    spools.forget_old()
    assert spools.attempts("run") == [2, 3]
    assert spools.attempts("unknown") == []
