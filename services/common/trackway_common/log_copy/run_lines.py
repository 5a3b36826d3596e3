"""Where each run stands, folded while its log is copied."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.commit import Commit, UnknownFact
from trackway_common.events import AttemptPlaced, AttemptRefused, Fact, RunRefused, RunSubmitted
from trackway_common.history.fold_runs import phase_after
from trackway_common.log_copy.index import RunLine


class RunLines:
    """Takes the accepted commits of run streams, in their order."""

    def __init__(self) -> None:
        self.lines: dict[str, RunLine] = {}

    def take(self, commit: Commit) -> None:
        """Apply one commit of ``runs/{run}``."""
        run_id = commit.stream.partition("/")[2]
        for fact in commit.facts:
            if not isinstance(fact, UnknownFact):
                self._apply(run_id, fact)

    def project(self, run_id: str) -> str:
        """Project of a run; empty before its first fact."""
        line = self.lines.get(run_id)
        return line.project if line else ""

    def _apply(self, run_id: str, fact: Fact) -> None:
        match fact:
            case RunSubmitted() | RunRefused():
                self.lines[run_id] = _first(run_id, fact)
            case AttemptPlaced() | AttemptRefused() if run_id in self.lines:
                self.lines[run_id] = replace(self.lines[run_id], attempt=fact.attempt)
            case _:
                pass
        entered = phase_after(fact)
        if entered is not None and run_id in self.lines:
            self.lines[run_id] = replace(self.lines[run_id], phase=entered[0], phase_at=entered[1])


def _first(run_id: str, fact: RunSubmitted | RunRefused) -> RunLine:
    at = fact.submitted_at if isinstance(fact, RunSubmitted) else fact.refused_at
    compute = fact.spec.compute if isinstance(fact, RunSubmitted) else None
    said = fact.spec if isinstance(fact, RunSubmitted) else fact
    return RunLine(
        run_id=run_id,
        project=said.project,
        model_family=said.model_family,
        compute_class=compute.compute_class if compute else "",
        pool=compute.pool if compute else "",
        phase="",
        phase_at=at,
        attempt=0,
    )
