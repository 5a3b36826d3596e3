"""Reads what ``faulthandler`` writes: the main thread's frames out of the stacks of all threads."""

from __future__ import annotations

import re

from trackway_trainer_agent.domain.observations import Frame

_THREAD = re.compile(r"(?P<current>Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):")
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.+)')


def main_frames(text: str) -> tuple[Frame, ...]:
    """Frames of the main thread, innermost last; empty when there is none.

    The kernel hands a process's signal to its main thread, which is then the "current" one; else it is listed last.
    """
    current: list[Frame] | None = None
    frames: list[Frame] = []
    for line in text.splitlines():
        if (header := _THREAD.match(line)) is not None:
            frames = []
            if header["current"].startswith("Current"):
                current = frames
        elif (match := _FRAME.match(line)) is not None:
            number = match["line"]
            frames.append(
                Frame(file=match["file"], line=int(number) if number.isdigit() else 0, function=match["function"])
            )
    return tuple(reversed(current if current is not None else frames))
