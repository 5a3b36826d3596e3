"""Keeps what was seen small enough to be kept for ever, before it is judged: what is judged is what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from trackway_trainer_agent.domain.observations import (
    ClusterLost,
    ErrorSeen,
    Hang,
    HostFacts,
    LaunchProblem,
    NodeLeaving,
    Observation,
    RankExit,
    RankLost,
    RankSilent,
    StopOrdered,
)

TEXT_CHARACTERS = 4096
LINE_CHARACTERS = 500
STDERR_LINES = 50
KERNEL_LINES = 20
FRAMES = 24
CAUSES = 8
LEAN_STDERR_LINES = 5
"""Where nothing can be stored beside the receipt."""


def bounded(seen: Observation) -> Observation:
    """The observation with its texts cut; a few KiB for each rank, 30 KiB at most."""
    match seen:
        case RankExit():
            return replace(
                seen,
                error=_error(seen.error) if seen.error is not None else None,
                stderr_tail=tuple(_cut(line, LINE_CHARACTERS) for line in seen.stderr_tail[-STDERR_LINES:]),
                host=_host(seen.host),
            )
        case RankLost() | NodeLeaving():
            return replace(seen, text=_cut(seen.text, TEXT_CHARACTERS))
        case LaunchProblem():
            return replace(seen, message=_cut(seen.message, TEXT_CHARACTERS))
        case StopOrdered():
            return replace(seen, why=_cut(seen.why, TEXT_CHARACTERS))
        case Hang():
            return replace(seen, ranks=tuple(replace(one, frames=one.frames[-FRAMES:]) for one in seen.ranks))
        case ClusterLost() | RankSilent():
            return seen
        case _ as never:
            assert_never(never)


def lean(seen: Observation) -> Observation:
    """The observation without most of what it printed."""
    return replace(seen, stderr_tail=seen.stderr_tail[-LEAN_STDERR_LINES:]) if isinstance(seen, RankExit) else seen


def _error(error: ErrorSeen) -> ErrorSeen:
    return replace(
        error,
        exception_type=_cut(error.exception_type, LINE_CHARACTERS),
        message=_cut(error.message, TEXT_CHARACTERS),
        chain=tuple(_cut(cause, LINE_CHARACTERS) for cause in error.chain[:CAUSES]),
        frames=error.frames[-FRAMES:],
    )


def _host(host: HostFacts) -> HostFacts:
    lines = tuple(_cut(line, LINE_CHARACTERS) for line in host.kernel_lines[-KERNEL_LINES:])
    return replace(host, kernel_lines=lines)


def _cut(text: str, characters: int) -> str:
    """Head and tail: an error says what it is at the front, and often why at the end."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}…{text[-half:]}"
