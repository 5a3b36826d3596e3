"""Ends what a stack left running."""

from __future__ import annotations

from functools import partial

from trackway.local.processes import end_processes, stack_processes
from trackway.local.state import StackRecord, StateFolder
from trackway.local.status import recorded_children

LEFTOVER_GRACE_S = 3.0
"""Kafka closes its log in 1 s; without it the next start takes longer, no more."""


def end_leftovers(folder: StateFolder, record: StackRecord) -> int:
    """End every process of the stack and return how many there were.

    Raises:
        Unavailable: something can't be killed.
    """
    sessions = [child.process for child in recorded_children(folder) if child.process is not None]
    find = partial(stack_processes, record.stack_id, sessions=sessions)
    found = len(find())
    if found:
        end_processes(find, grace_s=LEFTOVER_GRACE_S)
    return found
