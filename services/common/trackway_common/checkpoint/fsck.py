"""Check everything about a run's checkpoints, and report all that is wrong instead of stopping at the first."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.checkpoint.commit_log import CommitLog, refuse_gaps
from trackway_common.checkpoint.layout import data_prefix, log_prefix, parse_slot_file
from trackway_common.checkpoint.log_state import LogState, fold
from trackway_common.checkpoint.verify import Depth, verify_commit
from trackway_common.errors import CorruptLog


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckReport:
    run_id: str
    entries: int
    verified: tuple[int, ...]
    """Slots of the commits that were read and are whole."""
    problems: tuple[str, ...]
    writing: tuple[str, ...]
    """Folders with no commit: saves in progress, or what a collection will drop."""

    @property
    def ok(self) -> bool:
        return not self.problems


def fsck(log: CommitLog, *, depth: Depth = Depth.HASHES) -> FsckReport:
    """Recompute every head, read every restorable commit, and look for what should not be there.

    Raises:
        Unavailable: the store could not be read.
    """
    problems: list[str] = []
    state = _refolded(log, problems)
    verified: list[int] = []
    for commit in state.restorable:
        checked = verify_commit(log.store, log.run_id, commit.commit.path, commit.commit.manifest_digest, depth)
        problems += [f"commit in slot {commit.slot}: {problem}" for problem in checked.problems]
        verified += [commit.slot] if checked.ok else []
    return FsckReport(
        run_id=log.run_id,
        entries=state.slot,
        verified=tuple(sorted(verified)),
        problems=(*problems, *_foreign_names(log)),
        writing=_writing(log, state),
    )


def _refolded(log: CommitLog, problems: list[str]) -> LogState:
    """Fold from nothing, as far as the log can be believed."""
    state = LogState()
    slots = log.slots()
    try:
        refuse_gaps(slots)
    except CorruptLog as error:
        problems.append(str(error))
    for slot in slots:
        try:
            state = fold(state, (log.entry(slot),))
        except CorruptLog as error:
            problems.append(str(error))
            return state
    return state


def _foreign_names(log: CommitLog) -> list[str]:
    names = log.store.names(log_prefix(log.run_id))
    return [f"log/{name} is no log entry" for name in names if parse_slot_file(name) is None and name != "hint"]


def _writing(log: CommitLog, state: LogState) -> tuple[str, ...]:
    names = (name.rstrip("/") for name in log.store.names(data_prefix(log.run_id)))
    return tuple(name for name in names if state.committed_as(f"data/{name}") is None)
