"""Fold the accepted commits of one run into its history. Pure; works on a copied log as well as on the live one.

Each stream has its own small ``evolve``; commits of different streams may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trackway_common.commit import Commit, UnknownFact
from trackway_common.events import Fact, OwnershipClaimed
from trackway_common.history.fold_attempts import evolve_attempt
from trackway_common.history.fold_checkpoints import evolve_checkpoints
from trackway_common.history.fold_evaluations import evolve_evaluations
from trackway_common.history.fold_runs import evolve_run
from trackway_common.history.model import RunHistory
from trackway_common.history.parts import attempt_number
from trackway_common.history.timeline import in_order, moments_of
from trackway_common.ids import root_key


def run_of(commit: Commit) -> str | None:
    """Id of the run that a commit is about; None for datasets, packs, pools and claims of partitions."""
    kind = commit.stream.partition("/")[0]
    return root_key(commit.stream).decode() if kind in _EVOLVE else None


def fold_run(run_id: str, commits: Iterable[Commit]) -> RunHistory:
    """Return the history of one run.

    Args:
        run_id: commits of other runs are passed over.
        commits: accepted ones, in order within each stream; commits of several streams may be mixed.
    """
    history = RunHistory(run_id=run_id)
    for commit in commits:
        if run_of(commit) == run_id:
            history = _fold_commit(history, commit)
    return replace(history, timeline=in_order(history.timeline))


def _fold_commit(history: RunHistory, commit: Commit) -> RunHistory:
    evolve = _EVOLVE[commit.stream.partition("/")[0]]
    for fact in commit.facts:
        if isinstance(fact, UnknownFact):
            history = replace(history, unknown_facts=history.unknown_facts + 1)
        else:
            history = evolve(history, commit, fact)
    return replace(history, timeline=(*history.timeline, *moments_of(commit)))


def _evolve_run(history: RunHistory, commit: Commit, fact: Fact) -> RunHistory:
    return evolve_run(history, fact, traceparent=commit.traceparent)


def _evolve_attempt(history: RunHistory, commit: Commit, fact: Fact) -> RunHistory:
    number = attempt_number(commit.stream)
    return history if number is None else evolve_attempt(history, number, fact)


def _evolve_checkpoints(history: RunHistory, _commit: Commit, fact: Fact) -> RunHistory:
    return evolve_checkpoints(history, fact)


def _evolve_evaluations(history: RunHistory, _commit: Commit, fact: Fact) -> RunHistory:
    return history if isinstance(fact, OwnershipClaimed) else evolve_evaluations(history, fact)


_EVOLVE = {
    "runs": _evolve_run,
    "attempts": _evolve_attempt,
    "checkpoints": _evolve_checkpoints,
    "evaluations": _evolve_evaluations,
}
