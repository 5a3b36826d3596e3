"""Reads why a trainer died: its error file, torchelastic's, or the traceback it printed last.

The trainer is the user's program: what lies there may be anything, of any size.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from trackway_trainer_agent.worker.records import ErrorFrame, ErrorRecord

READ_BYTES = 64 * 1024
"""The SDK's own file stays below; more is never read."""
_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)')
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?")
_SAID = re.compile(r'"message":\s*"(?P<said>(?:[^"\\]|\\.){1,500})')
"""The innermost message at the head of a torchelastic file that is too long to be read."""
_TRACEBACK = "Traceback (most recent call last):"
_FRAMES_KEPT = 12
_CAUSES_KEPT = 8
_MESSAGE_KEPT = 4096
_NAME_KEPT = 500
_MOST = 2**53


def read_error(error_file: Path, torchelastic_file: Path, stderr_tail: Sequence[str]) -> ErrorRecord | None:
    """The best record there is, in the order of evidence: written by the process before printed by it."""
    return _from_sdk(error_file) or _from_torchelastic(torchelastic_file) or traceback_in(stderr_tail)


def traceback_in(lines: Sequence[str]) -> ErrorRecord | None:
    """The last uncaught exception among printed lines; a log signature, not proof."""
    starts = [number for number, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if not starts:
        return None
    behind = lines[starts[-1] + 1 :]
    # Frames and their source are indented; the exception's own line is the first that is not.
    said = next((match for line in behind if (match := _EXCEPTION.fullmatch(line))), None)
    if said is None:
        return None
    return _printed(said["type"], said["message"] or "", behind, source="stderr")


def _from_sdk(path: Path) -> ErrorRecord | None:
    members = _json_object(path)
    if members is None:
        return None
    try:
        return _record(members)
    except (KeyError, TypeError, ValueError):
        return None  # Written by something else: not evidence.


def _record(members: Mapping[str, object]) -> ErrorRecord:
    frames, chain = members["frames"], members["chain"]
    if not isinstance(frames, list) or not isinstance(chain, list):
        raise TypeError("frames and chain are lists")
    reason, step, monotonic_ns = members.get("trackway_reason"), members.get("step"), members["monotonic_ns"]
    return ErrorRecord(
        source="sdk",
        exception_type=_text(members["type"], _NAME_KEPT),
        message=_text(members["message"], _MESSAGE_KEPT),
        chain=tuple(_text(cause, _MESSAGE_KEPT) for cause in chain[:_CAUSES_KEPT]),
        frames=tuple(
            ErrorFrame(
                file=_text(frame["file"], _NAME_KEPT),
                line=_whole(frame["line"], 2**31),
                function=_text(frame["function"], _NAME_KEPT),
            )
            for frame in frames[-_FRAMES_KEPT:]
        ),
        trackway_reason=_text(reason, _NAME_KEPT) if isinstance(reason, str) else None,
        step=_whole(step) if isinstance(step, int) else None,
        monotonic_ns=_whole(monotonic_ns, 2**62),
        at_ms=_whole(members["at_ms"]),
    )


def _from_torchelastic(path: Path) -> ErrorRecord | None:
    """``torch.distributed.elastic.multiprocessing.errors.ErrorHandler`` writes the traceback as text."""
    head = _head(path)
    members = _parsed(head)
    if members is None:
        # Cut off behind what could be read, or garbage: the head may still say what it was.
        found = _SAID.search(head)
        return None if found is None or len(head) < READ_BYTES else _torchelastic(_unescaped(found["said"]), "", "")
    body = members.get("message")
    if isinstance(body, str):
        return _torchelastic(body, "", "") if ": " in body else None
    if not isinstance(body, dict):
        return None
    extra = body.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    return _torchelastic(
        str(body.get("message", "")), str(extra.get("py_callstack", "")), str(extra.get("timestamp", ""))
    )


def _torchelastic(said: str, callstack: str, seconds: str) -> ErrorRecord | None:
    match = _EXCEPTION.match(said)
    if match is None:
        return None
    at_ms = int(seconds) * 1000 if seconds.isdigit() and len(seconds) < 12 else None
    kind, _, message = said.partition(": ")
    return _printed(kind, message, callstack.splitlines(), source="torchelastic", at_ms=at_ms)


def _printed(kind: str, message: str, lines: Sequence[str], *, source: str, at_ms: int | None = None) -> ErrorRecord:
    return ErrorRecord(
        source="torchelastic" if source == "torchelastic" else "stderr",
        exception_type=_text(kind, _NAME_KEPT),
        message=_text(message, _MESSAGE_KEPT),
        chain=(),
        frames=_frames(lines),
        trackway_reason=None,
        step=None,
        monotonic_ns=None,
        at_ms=time.time_ns() // 1_000_000 if at_ms is None else at_ms,
    )


def _frames(lines: Sequence[str]) -> tuple[ErrorFrame, ...]:
    found = [match for line in lines if (match := _FRAME.fullmatch(line))]
    return tuple(
        ErrorFrame(
            file=_text(frame["file"], _NAME_KEPT),
            line=min(int(frame["line"][:10]), 2**31),
            function=_text(frame["function"], _NAME_KEPT),
        )
        for frame in found[-_FRAMES_KEPT:]
    )


def _json_object(path: Path) -> Mapping[str, object] | None:
    return _parsed(_head(path))


def _parsed(text: str) -> Mapping[str, object] | None:
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def _head(path: Path) -> str:
    """The first bytes of a plain file; a pipe that nobody writes to would be read for ever."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return os.read(file, READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _text(value: object, characters: int) -> str:
    """Text that the log can hold: JSON may spell half a character."""
    return str(value)[:characters].encode("utf-8", "backslashreplace").decode()


def _whole(value: object, most: int = _MOST) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise TypeError(f"{str(value)[:40]} is no count")
    return value
