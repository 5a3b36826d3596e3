"""Output is cut into lines whatever the program prints and however the pipe splits it."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st
from trackway_trainer_agent.worker.output_lines import MAX_LINE_BYTES, LineSplitter, read_lines


def all_lines(*parts: bytes) -> list[str]:
    splitter = LineSplitter()
    lines = [line for part in parts for line in splitter.feed(part)]
    return lines + splitter.finish()


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)), st.data())
def test_lines_do_not_depend_on_how_the_pipe_splits_them(lines: list[str], data: st.DataObject) -> None:
    stream = "".join(line + "\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert all_lines(*parts) == lines


def test_last_line_without_newline_is_kept() -> None:
    assert all_lines(b"one\ntwo") == ["one", "two"]


def test_bytes_that_are_no_utf8_stay_readable() -> None:
    assert all_lines(b"caf\xe9\n") == ["caf\\xe9"]


def test_long_line_is_cut_and_says_by_how_much() -> None:
    (line,) = all_lines(b"x" * 3000, b"x" * 3000 + b"\n")
    assert line == "x" * MAX_LINE_BYTES + f" … [{6000 - MAX_LINE_BYTES} bytes cut]"


def test_progress_bar_leaves_only_what_stands_there_last() -> None:
    assert all_lines(b"\r 10%|#", b"   \r 90%|###\r100%|####\nnext\n") == ["100%|####", "next"]


def test_windows_line_ends_are_line_ends() -> None:
    assert all_lines(b"one\r\ntwo\r\n") == ["one", "two"]


def test_reader_ends_when_the_last_writer_closes() -> None:
    readable, writable = os.pipe()
    seen: list[str] = []
    reader = read_lines(readable, seen.append)
    os.write(writable, b"a\nb")
    os.close(writable)
    reader.join(60)
    assert not reader.is_alive()
    assert seen == ["a", "b"]
