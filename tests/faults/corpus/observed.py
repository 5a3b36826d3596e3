"""From a run's accepted commits to what they say of one attempt. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from trackway_common.commit import Commit
from trackway_common.events import AttemptEnded, AttemptStarted, RetryDecided
from trackway_common.ids import attempt_stream, run_stream

from tests.faults.corpus.row import Observed

INTERPRETER = re.compile(r"(?:/[^\s/:]+)+/bin/python[0-9.]*")
"""Where the checkout that was measured had its environment says nothing of a fault."""


def observed(run_id: str, attempt: int, commits: Iterable[Commit]) -> Observed:
    """What the log says of the attempt's end."""
    facts = [(commit.stream, fact) for commit in commits for fact in commit.facts]
    of_attempt = [fact for stream, fact in facts if stream == attempt_stream(run_id, attempt)]
    ended = next((fact for fact in of_attempt if isinstance(fact, AttemptEnded)), None)
    if ended is None:
        return Observed(root={})
    started = next((fact for fact in of_attempt if isinstance(fact, AttemptStarted)), None)
    of_run = [fact for stream, fact in facts if stream == run_stream(run_id)]
    decided = next((fact for fact in of_run if isinstance(fact, RetryDecided) and fact.attempt == attempt), None)
    root = ended.evidence[0] if ended.evidence else None
    return Observed(
        reason=ended.reason.value,
        move=decided.move.value if decided else "NONE",
        ledger=decided.ledger if decided else "",
        blamed=ended.blamed_rank,
        cause=INTERPRETER.sub("python", ended.cause),
        root={"source": root.source, "authority": root.authority.value, "role": root.role.value} if root else {},
        classifier_version=ended.classifier_version,
        ranks=_ranks(ended, started),
    )


def _ranks(ended: AttemptEnded, started: AttemptStarted | None) -> Sequence[dict[str, Any]]:
    """Every rank that started or ended; one that started and whose end nobody could see is lost."""
    pids = {rank.rank: rank.trainer_pid for rank in started.ranks} if started else {}
    ends = {rank.rank: (rank.exit_code, rank.signal) for rank in ended.ranks}
    found = []
    for rank in sorted({*pids, *ends}):
        code, signal = ends.get(rank, (None, None))
        lost = rank not in ends
        found.append({"rank": rank, "pid": pids.get(rank), "exit_code": code, "signal": signal, "lost": lost})
    return found
