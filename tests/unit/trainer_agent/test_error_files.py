"""Why a trainer died, read from what it wrote or printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trackway_common.rank_protocol.error_file import write_error_file
from trackway_trainer_agent.worker.error_files import read_error, traceback_in


class Reasoned(Exception):
    trackway_reason = "DATA_CORRUPT"


def fail() -> None:
    try:
        raise Reasoned("bad bytes")
    except Reasoned as error:
        raise ValueError("can't go on") from error


def caught() -> ValueError:
    with pytest.raises(ValueError) as raised:
        fail()
    return raised.value


def test_sdk_file_tells_type_message_chain_frames_step_and_reason(tmp_path: Path) -> None:
    write_error_file(tmp_path / "error", caught(), 17)
    record = read_error(tmp_path / "error", tmp_path / "none", ())
    assert record is not None
    assert (record.source, record.exception_type, record.message) == ("sdk", "ValueError", "can't go on")
    assert record.chain == (f"{__name__}.Reasoned: bad bytes",)
    assert record.frames[-1].function == "fail"
    assert record.step == 17
    assert record.trackway_reason == "DATA_CORRUPT"


def test_first_error_written_is_the_one_that_counts(tmp_path: Path) -> None:
    write_error_file(tmp_path / "error", ValueError("first"), 1)
    write_error_file(tmp_path / "error", ValueError("second"), 2)
    record = read_error(tmp_path / "error", tmp_path / "none", ())
    assert record is not None
    assert record.message == "first"


def test_message_that_is_no_utf8_is_written(tmp_path: Path) -> None:
    write_error_file(tmp_path / "error", ValueError("lone \udc80 surrogate"), None)
    record = read_error(tmp_path / "error", tmp_path / "none", ())
    assert record is not None
    assert record.message == "lone \\udc80 surrogate"


def test_torchelastic_file_is_understood(tmp_path: Path) -> None:
    body = {
        "message": {
            "message": "RuntimeError: boom: with colon",
            "extraInfo": {
                "py_callstack": 'Traceback (most recent call last):\n  File "/a/b.py", line 3, in step\n    x()\n'
                "RuntimeError: boom: with colon\n",
                "timestamp": "1700000000",
            },
        }
    }
    (tmp_path / "elastic").write_text(json.dumps(body))
    record = read_error(tmp_path / "none", tmp_path / "elastic", ())
    assert record is not None
    assert (record.source, record.exception_type, record.message) == (
        "torchelastic",
        "RuntimeError",
        "boom: with colon",
    )
    assert (record.frames[0].file, record.frames[0].line, record.frames[0].function) == ("/a/b.py", 3, "step")
    assert record.at_ms == 1_700_000_000_000


def test_printed_traceback_is_the_last_resort() -> None:
    program = (
        "def f():\n    raise KeyError('lr')\ntry:\n    f()\nexcept KeyError as e:\n    raise OSError(2, 'gone') from e"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    record = traceback_in(["some warning", *run.stderr.splitlines(), "later line"])
    assert record is not None
    assert (record.source, record.exception_type) == ("stderr", "FileNotFoundError")
    assert record.message == "[Errno 2] gone"
    assert record.frames[-1].function == "<module>"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"type": 1, "frames": 3}', "\x00"])
def test_damaged_files_are_no_evidence(tmp_path: Path, content: str) -> None:
    (tmp_path / "error").write_text(content)
    assert read_error(tmp_path / "error", tmp_path / "error", ("no traceback",)) is None


GOOD = {"type": "ValueError", "message": "m", "chain": [], "frames": [], "monotonic_ns": 1, "at_ms": 2}
TORCHELASTIC = {"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "", "timestamp": "1700000000"}}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff" * 100,
        b"[" * 60_000,
        b"{" * 60_000,
        b'{"type": "ValueError"}',
        json.dumps(GOOD | {"at_ms": -1}).encode(),
        json.dumps(GOOD | {"at_ms": 10**30}).encode(),
        json.dumps(GOOD | {"monotonic_ns": 1.5}).encode(),
        json.dumps(GOOD | {"step": -7}).encode(),
        json.dumps(GOOD | {"frames": [1]}).encode(),
        json.dumps(GOOD | {"frames": [{"file": "f", "line": 10**12, "function": "g"}]}).encode(),
        json.dumps(GOOD | {"chain": "x"}).encode(),
        b'"' + b"x" * 100_000,
    ],
)
def test_garbage_is_no_evidence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "error").write_bytes(content)
    (tmp_path / "elastic").write_bytes(content)
    assert read_error(tmp_path / "error", tmp_path / "elastic", ()) is None


def test_of_a_file_of_a_gigabyte_only_the_head_is_read(tmp_path: Path) -> None:
    with (tmp_path / "elastic").open("wb") as file:
        file.write(b'{"message": {"message": "ValueError: too \\"long\\" ' + b"x" * 100_000)
        file.truncate(2**30)
    record = read_error(tmp_path / "elastic", tmp_path / "elastic", ())
    assert record is not None
    assert (record.source, record.exception_type) == ("torchelastic", "ValueError")
    assert record.message.startswith('too "long" xxx')
    assert len(record.message) < 1000


def test_a_pipe_or_a_folder_where_the_file_should_be_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert read_error(tmp_path / "pipe", tmp_path / "folder", ()) is None


def test_half_a_character_does_not_reach_the_log(tmp_path: Path) -> None:
    (tmp_path / "error").write_text(json.dumps(GOOD | {"message": "bad \ud800"}))
    record = read_error(tmp_path / "error", tmp_path / "none", ())
    assert record is not None
    assert record.message.encode() == b"bad \\ud800"


def test_long_members_are_cut(tmp_path: Path) -> None:
    frame = {"file": "f" * 900, "line": 1, "function": "g"}
    (tmp_path / "error").write_text(
        json.dumps(GOOD | {"message": "m" * 5000, "frames": [frame] * 40, "chain": ["c"] * 40})
    )
    record = read_error(tmp_path / "error", tmp_path / "none", ())
    assert record is not None
    assert (len(record.message), len(record.frames), len(record.chain)) == (4096, 12, 8)
    assert len(record.frames[0].file) == 500


@pytest.mark.parametrize(
    ("content", "message"),
    [(TORCHELASTIC, "bad"), ({"message": "ValueError: as text"}, "as text")],
)
def test_torchelastics_file_in_both_its_forms(tmp_path: Path, content: object, message: str) -> None:
    (tmp_path / "elastic").write_text(json.dumps(content))
    record = read_error(tmp_path / "none", tmp_path / "elastic", ("Traceback (most recent call last):", "KeyError: 1"))
    assert record is not None
    assert (record.source, record.exception_type, record.message) == ("torchelastic", "ValueError", message)
