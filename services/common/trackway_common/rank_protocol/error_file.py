"""The file in which a dying trainer says why: written by the SDK, read by the actor. Standard library only."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

FRAMES_KEPT = 12
TEXT_KEPT = 4096
CHAIN_KEPT = 8


def write_error_file(path: Path, error: BaseException, step: int | None) -> None:
    """Record an exception once: the first one written is the one that counts.

    An exception class names its termination reason by a class attribute ``trackway_reason``.
    """
    if path.exists():
        return
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(describe(error, step)), encoding="utf-8")
    unfinished.rename(path)


def describe(error: BaseException, step: int | None) -> dict[str, object]:
    """The members of an error file."""
    chain = causes(error)
    return {
        "version": 1,
        "type": qualified_name(type(error)),
        "message": _text(error),
        "chain": [f"{qualified_name(type(cause))}: {_text(cause)}" for cause in chain],
        "frames": _frames(error.__traceback__),
        "trackway_reason": _reason((error, *chain)),
        "step": step,
        "monotonic_ns": time.monotonic_ns(),
        "at_ms": time.time_ns() // 1_000_000,
    }


def install_excepthook(path: Path, step: Callable[[], int | None]) -> None:
    """Write the file for an exception that ends the process, then print it as before."""
    before = sys.excepthook

    def record(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        write_error_file(path, error, step())
        before(kind, error, trace)

    sys.excepthook = record


def causes(error: BaseException) -> tuple[BaseException, ...]:
    """What an exception came from, nearest first, as a traceback would print it."""
    found: list[BaseException] = []
    following = _cause(error)
    while following is not None and following not in found and len(found) < CHAIN_KEPT:
        found.append(following)
        following = _cause(following)
    return tuple(found)


def qualified_name(kind: type[BaseException]) -> str:
    """``module.Name``, bare for built-in exceptions."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _text(error: BaseException) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode()[:TEXT_KEPT]


def _frames(trace: TracebackType | None) -> list[dict[str, object]]:
    stack = traceback.extract_tb(trace)[-FRAMES_KEPT:]
    return [{"file": frame.filename, "line": frame.lineno, "function": frame.name} for frame in stack]


def _reason(errors: tuple[BaseException, ...]) -> str | None:
    reasons = (getattr(error, "trackway_reason", None) for error in errors)
    return next((reason for reason in reasons if isinstance(reason, str)), None)
