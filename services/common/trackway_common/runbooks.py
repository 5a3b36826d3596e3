"""Where the runbook of a reason lies in the source tree."""

from __future__ import annotations

from trackway_common.events import TerminationReason

FOLDER = "docs/runbooks"
RUN_TOKENS = ("GATE_FAILED", "EVALUATION_EXHAUSTED", "NOTHING_TO_EVALUATE")
"""Why a run failed or is held though its training finished."""
WITHOUT = frozenset({TerminationReason.UNSPECIFIED, TerminationReason.COMPLETED, TerminationReason.EARLY_STOPPED})
"""Reasons after which nobody has anything to do."""


def runbook_path(token: str) -> str:
    """``docs/runbooks/host_oom.md``; empty for what has no runbook.

    Args:
        token: a termination reason, or why a run is where it is.
    """
    known = {*RUN_TOKENS, *(reason.value for reason in TerminationReason if reason not in WITHOUT)}
    return f"{FOLDER}/{token.lower()}.md" if token in known else ""
