"""Explains a run from a copied log, with the code that explains it from a live one."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.history.explain import Explanation, explain
from trackway_common.history.explain.whole_texts import whole_texts
from trackway_common.history.fold import fold_run
from trackway_common.log_copy.reader import LogCopy


def explain_copy(copy: LogCopy, run_id: str, attempt: int | None) -> Explanation:
    """Explain an attempt, or the run by its newest one, as of the time at which the copy was made.

    Raises:
        NotFound: the log has no such run or attempt.
        CommandRejected: the copy is damaged.
    """
    history = fold_run(run_id, copy.commits(run_id))
    around = replace(copy.surroundings(history), texts=whole_texts(history, attempt, copy.blob))
    return explain(history, attempt, as_of=copy.manifest.exported_at, surroundings=around)
