"""Reads why a trainer died: its error file, torchelastic's, or the traceback it printed last."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from trackway_trainer_agent.worker.records import ErrorFrame, ErrorRecord

_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)')
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?")
_TRACEBACK = "Traceback (most recent call last):"
_FRAMES_KEPT = 12
_MESSAGE_KEPT = 4096


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
    return ErrorRecord(
        source="stderr",
        exception_type=said["type"],
        message=(said["message"] or "")[:_MESSAGE_KEPT],
        chain=(),
        frames=_frames(behind),
        trackway_reason=None,
        step=None,
        monotonic_ns=None,
        at_ms=time.time_ns() // 1_000_000,
    )


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
    reason, step = members.get("trackway_reason"), members.get("step")
    return ErrorRecord(
        source="sdk",
        exception_type=str(members["type"]),
        message=str(members["message"]),
        chain=tuple(str(cause) for cause in chain),
        frames=tuple(
            ErrorFrame(file=str(frame["file"]), line=int(frame["line"]), function=str(frame["function"]))
            for frame in frames
        ),
        trackway_reason=reason if isinstance(reason, str) else None,
        step=step if isinstance(step, int) else None,
        monotonic_ns=_whole(members["monotonic_ns"]),
        at_ms=_whole(members["at_ms"]),
    )


def _from_torchelastic(path: Path) -> ErrorRecord | None:
    """``torch.distributed.elastic.multiprocessing.errors.ErrorHandler`` writes the traceback as text."""
    members = _json_object(path)
    body = members.get("message") if members else None
    if not isinstance(body, dict):
        return None
    extra = body.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    seconds = str(extra.get("timestamp", ""))
    kind, _, message = str(body.get("message", "")).partition(": ")
    return ErrorRecord(
        source="torchelastic",
        exception_type=kind,
        message=message[:_MESSAGE_KEPT],
        chain=(),
        frames=_frames(str(extra.get("py_callstack", "")).splitlines()),
        trackway_reason=None,
        step=None,
        monotonic_ns=None,
        at_ms=int(seconds) * 1000 if seconds.isdigit() else time.time_ns() // 1_000_000,
    )


def _frames(lines: Sequence[str]) -> tuple[ErrorFrame, ...]:
    found = [match for line in lines if (match := _FRAME.fullmatch(line))]
    return tuple(
        ErrorFrame(file=frame["file"], line=int(frame["line"]), function=frame["function"])
        for frame in found[-_FRAMES_KEPT:]
    )


def _json_object(path: Path) -> Mapping[str, object] | None:
    try:
        members = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return members if isinstance(members, dict) else None


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no integer")
    return value
