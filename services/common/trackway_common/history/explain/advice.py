"""What to do, and exactly what to type."""

from __future__ import annotations

import shlex

from trackway_common.events import NextMove, RunPhase, RunSpec, TerminationReason
from trackway_common.history.explain.sections import (
    Command,
)
from trackway_common.history.explain.subject import Subject, newest_begun
from trackway_common.history.model import RunHistory
from trackway_common.history.receipt.outcome_columns import IN_PROGRESS, ruling_of
from trackway_common.reasons import policy_of

_FINE = frozenset({TerminationReason.COMPLETED, TerminationReason.EARLY_STOPPED})


def advice_of(subject: Subject) -> tuple[str, ...]:
    """Hints for the reason and for where the run stands now."""
    ended, said = subject.attempt.ended, ruling_of(subject.attempt)
    reason = said.reason if said else ended.reason if ended else None
    if reason is None:
        return ("Nothing to do: it runs. Watch it, or look at its newest log lines.",)
    advice = [policy_of(reason).hint]
    decision = subject.attempt.decision
    if decision and decision.move is NextMove.RETRY and not subject.history.ended:
        advice.append("The retry goes on by itself; act only if the same reason comes back.")
    blamed = ended.blamed_node if ended else None
    if blamed and reason not in _FINE:
        advice.append(f"If {blamed} is blamed again by other runs, take it out of its pool.")
    return (*advice, *run_advice(subject.history))


def run_advice(history: RunHistory) -> tuple[str, ...]:
    """Hints for where the run stands."""
    match history.phase:
        case RunPhase.REFUSED:
            return ("Correct each field named above and submit again.",)
        case RunPhase.SUBMITTED | RunPhase.QUEUED if newest_begun(history) is None:
            return ("Nothing to do: it is placed as soon as its pool has room.",)
        case RunPhase.HELD:
            return ("The run waits for a person: cancel it, or submit it again once the cause is gone.",)
        case RunPhase.FAILED if history.phase_reason == "GATE_FAILED":
            return ("Training worked; its result did not pass a blocking gate. Look at the failed samples.",)
    return ()


def commands_of(subject: Subject) -> tuple[Command, ...]:
    """Commands to look further, reproduce or clone."""
    run_id, number = subject.history.run_id, subject.attempt.attempt
    rank = subject.attempt.ended.blamed_rank if subject.attempt.ended else None
    blamed = f" --rank {rank}" if rank is not None else ""
    running = subject.receipt.outcome.termination_reason == IN_PROGRESS
    commands = [
        Command(
            purpose="follow its output" if running else "read its last words",
            command=f"trackway train logs {run_id} --attempt {number}{blamed}{' --follow' if running else ''}",
        ),
        Command(purpose="see every column of the receipt", command=f"trackway attempt show {run_id}/{number}"),
    ]
    if subject.history.checkpoints:
        commands.append(Command(purpose="list its checkpoints", command=f"trackway checkpoint list {run_id}"))
    commands += [
        Command(purpose="see the evaluation", command=f"trackway evaluation show {evaluation.evaluation_id}")
        for evaluation in subject.history.evaluations[-1:]
    ]
    return (*commands, *reproduce(subject.history))


def reproduce(history: RunHistory) -> tuple[Command, ...]:
    """Commands that submit the same inputs again, by digest."""
    show = Command(purpose="get its spec", command=f"trackway train show {history.run_id} -o yaml")
    return (show, _submit(history.spec)) if history.spec else ()


def _submit(spec: RunSpec) -> Command:
    words = ["trackway", "train", "submit"]
    for data in spec.datasets:
        weight = f":{data.weight:g}" if data.weight != 1 else ""
        words += ["--dataset", f"{data.name}@{data.manifest_digest}{weight}"]
    words += ["--config", "run.yaml", "--compute", spec.compute.compute_class]
    if spec.evaluation_pack.name:
        words += ["--evaluation-pack", spec.evaluation_pack.name]
    commit = f"git checkout {spec.code.git_commit[:12]} && " if spec.code.git_commit else ""
    return Command(purpose="run the same inputs again", command=commit + shlex.join([*words, "--follow"]))
