"""What to do, and exactly what to type."""

from __future__ import annotations

from trackway_common.events import FailureDomain, NextMove, RunPhase, TerminationReason
from trackway_common.history.explain.after import NO_FLAVOR
from trackway_common.history.explain.sections import Command, Waiting
from trackway_common.history.explain.subject import Subject, newest_begun
from trackway_common.history.explain.whole_texts import evidence_blobs
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.receipt.outcome_columns import IN_PROGRESS, ruling_of
from trackway_common.reasons import policy_of
from trackway_common.runbooks import runbook_path

_NODE_MAY_BE_TO_BLAME = frozenset({FailureDomain.INFRA, FailureDomain.UNKNOWN})
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
    if blamed and policy_of(reason).domain in _NODE_MAY_BE_TO_BLAME:
        advice.append(f"If {blamed} is blamed again by other runs, take it out of its pool.")
    return (*advice, *run_advice(subject.history))


def run_advice(history: RunHistory) -> tuple[str, ...]:
    """Hints for where the run stands."""
    match history.phase:
        case RunPhase.REFUSED:
            return ("Correct each field named above and submit again.",)
        case RunPhase.SUBMITTED | RunPhase.QUEUED if newest_begun(history) is None:
            return ("It is placed as soon as its pool has room.",)
        case RunPhase.HELD:
            return ("The run waits for a person: release it once the cause is gone, or cancel it.",)
        case RunPhase.FAILED if history.phase_reason == "GATE_FAILED":
            return ("Training worked; its result did not pass a blocking gate. Look at the failed samples.",)
    return ()


def runbook_of(history: RunHistory, attempt: AttemptHistory | None) -> str:
    """Runbook of the attempt's reason, or of why its run is where it is."""
    said = ruling_of(attempt) if attempt else None
    ended = attempt.ended if attempt else None
    reason = said.reason if said else ended.reason if ended else None
    if reason is not None and reason not in _FINE:
        return runbook_path(reason)
    return runbook_path(history.phase_reason)


def waiting_advice(waiting: Waiting | None) -> tuple[str, ...]:
    """Hints for a wait that no patience ends."""
    if waiting is None or waiting.token != NO_FLAVOR:
        return ()
    return ("Waiting alone may not help: ask for fewer ranks or another class, or have the pool extended.",)


def commands_of(subject: Subject) -> tuple[Command, ...]:
    """Commands to look further, reproduce or clone."""
    history, number = subject.history, subject.attempt.attempt
    name = f"{history.run_id}/{number}"
    rank = subject.attempt.ended.blamed_rank if subject.attempt.ended else None
    blamed = f" --rank {rank}" if rank is not None else ""
    running = subject.receipt.outcome.termination_reason == IN_PROGRESS
    commands = [
        Command(
            purpose="follow its output" if running else "read its last words",
            command=f"trackway train logs {name}{blamed}{' --follow' if running else ''}",
        ),
        Command(purpose="see every column of the receipt", command=f"trackway attempt show {name}"),
        Command(purpose="see where the run's time went", command=f"trackway train goodput {history.run_id}"),
        *(_whole_text(digest) for digest in evidence_blobs(subject.attempt)),
    ]
    if history.checkpoints:
        commands.append(Command(purpose="list its checkpoints", command=f"trackway checkpoint list {history.run_id}"))
    commands += [
        Command(purpose="see the evaluation", command=f"trackway evaluation show {evaluation.evaluation_id}")
        for evaluation in history.evaluations[-1:]
    ]
    return (*commands, *run_commands(history))


def run_commands(history: RunHistory) -> tuple[Command, ...]:
    """Commands about the run as a whole."""
    commands: list[Command] = []
    if history.spec is not None:
        commands += [
            Command(purpose="see its pinned inputs", command=f"trackway train show {history.run_id}"),
            Command(purpose="run the same inputs again", command=_clone(history, "--follow")),
            Command(purpose="only check that they still resolve", command=_clone(history, "--validate-only")),
        ]
    if history.phase is RunPhase.QUEUED:
        commands.append(Command(purpose="see what its pool has", command="trackway pool list"))
    if history.phase is RunPhase.HELD:
        release = f"trackway train release {history.run_id} --reason 'what was done about it'"
        commands.append(Command(purpose="let it go on", command=release))
    if not history.ended:
        cancel = f"trackway train cancel {history.run_id} --reason 'why'"
        commands.append(Command(purpose="stop it for good", command=cancel))
    folder = f"run-{history.run_id[:8]}"
    copy = f"trackway log export {folder} --run {history.run_id} --blobs --telemetry"
    commands.append(Command(purpose="take its log along", command=copy))
    return tuple(commands)


def _clone(history: RunHistory, what: str) -> str:
    return f"trackway train submit --clone {history.run_id} {what}"


def _whole_text(digest: str) -> Command:
    return Command(purpose="read evidence that did not fit", command=f"trackway blob {digest}")
