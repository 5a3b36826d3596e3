"""What an exit code or a signal alone says."""

from __future__ import annotations

from trackway_common.events import TerminationReason as Reason

CRASH_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGFPE"})
_BY_SHELL = {
    132: "SIGILL",
    134: "SIGABRT",
    135: "SIGBUS",
    136: "SIGFPE",
    137: "SIGKILL",
    139: "SIGSEGV",
    143: "SIGTERM",
}
"""A shell reports a child's signal n as 128 + n."""


def signal_of(exit_code: int | None, signal: str | None) -> str | None:
    """The signal that ended the program, also where a shell in between turned it into a code."""
    return signal or _BY_SHELL.get(exit_code or 0)


def reason_of(exit_code: int | None, signal: str | None) -> tuple[Reason | None, float]:
    """The reason and the confidence in it; no reason for a clean exit."""
    name = signal_of(exit_code, signal)
    if name in CRASH_SIGNALS:
        return Reason.PROCESS_CRASH, 0.85
    if name is not None:
        return Reason.UNKNOWN_KILL, 0.5
    match exit_code:
        case 0:
            return None, 0.0
        case None:
            return Reason.UNKNOWN, 0.2
        case 126 | 127:  # A shell found no such program, or one that it may not execute.
            return Reason.CONFIG_INVALID, 0.7
        case _:
            return Reason.USER_CODE_ERROR, 0.6


def describe(exit_code: int | None, signal: str | None) -> str:
    """The status in words."""
    if signal is not None:
        return f"was ended by {signal}"
    if exit_code is None:
        return "ended with unknown status"
    by_shell = _BY_SHELL.get(exit_code)
    return f"exited with code {exit_code}" + (f" ({by_shell} of a child)" if by_shell else "")
