"""From a history to its explanation."""

from __future__ import annotations

from datetime import datetime

from trackway_common.errors import NotFound
from trackway_common.history.explain.advice import (
    advice_of,
    commands_of,
    run_advice,
    run_commands,
    runbook_of,
    waiting_advice,
)
from trackway_common.history.explain.after import decision_of, evaluation_note, evaluations_of, waiting_of
from trackway_common.history.explain.course import timeline_of
from trackway_common.history.explain.evidence import evidence_of
from trackway_common.history.explain.losses import checkpoints_of, cost_of
from trackway_common.history.explain.model import Explanation
from trackway_common.history.explain.ran import ran_of, where_of
from trackway_common.history.explain.sections import (
    TimelineRow,
)
from trackway_common.history.explain.subject import Subject, Surroundings, newest_begun, subject_of
from trackway_common.history.explain.verdict import attempt_lines, run_verdict, second_look_of, verdict_of
from trackway_common.history.model import RunHistory

NOTHING_AROUND = Surroundings()


def explain(
    history: RunHistory, attempt: int | None = None, *, as_of: datetime, surroundings: Surroundings = NOTHING_AROUND
) -> Explanation:
    """Explain an attempt, or the run by its newest attempt.

    Args:
        history: of the run.
        attempt: its number; None explains the newest, or the wait for the first.
        as_of: the time that waits are measured to.
        surroundings: what the run's own facts can't say.
    Raises:
        NotFound: no fact of the run is known, or it has no such attempt.
    """
    if not history.timeline:
        raise NotFound(f"no fact of run {history.run_id} is known")
    newest = newest_begun(history)
    if attempt is None and newest is None:
        return _explain_run(history, as_of, surroundings)
    number = attempt if attempt is not None else newest.attempt if newest else 0
    return _explain_attempt(subject_of(history, number, as_of, surroundings))


def _explain_attempt(subject: Subject) -> Explanation:
    history, spec = subject.history, subject.spec
    waiting = waiting_of(history, subject.as_of, subject.surroundings)
    return Explanation(
        name=subject.receipt.name,
        run_id=history.run_id,
        attempt=subject.attempt.attempt,
        project=spec.project,
        model_family=spec.model_family,
        as_of=subject.as_of,
        verdict=verdict_of(subject),
        judged_again=second_look_of(subject.attempt),
        violations=(),
        waiting=waiting,
        attempts=attempt_lines(subject),
        ran=ran_of(subject),
        where=where_of(subject),
        timeline=timeline_of(subject),
        evidence=evidence_of(subject),
        checkpoints=checkpoints_of(subject),
        cost=cost_of(subject),
        decision=decision_of(subject),
        evaluations=evaluations_of(history),
        evaluation_note=evaluation_note(history),
        advice=(*advice_of(subject), *waiting_advice(waiting)),
        runbook=runbook_of(history, subject.attempt),
        commands=commands_of(subject),
        unknown_facts=history.unknown_facts,
    )


def _explain_run(history: RunHistory, as_of: datetime, surroundings: Surroundings) -> Explanation:
    """A run that no attempt of which began: refused, waiting, or cancelled before its first placement."""
    spec, refused = history.spec, history.refused
    waiting = waiting_of(history, as_of, surroundings)
    project = spec.project if spec else refused.project if refused else ""
    return Explanation(
        name=f"projects/{project or '-'}/runs/{history.run_id}",
        run_id=history.run_id,
        attempt=None,
        project=project,
        model_family=spec.model_family if spec else refused.model_family if refused else "",
        as_of=as_of,
        verdict=run_verdict(history),
        judged_again=None,
        violations=refused.violations if refused else (),
        waiting=waiting,
        attempts=(),
        ran=None,
        where=None,
        timeline=_plain_timeline(history),
        evidence=None,
        checkpoints=None,
        cost=None,
        decision=None,
        evaluations=evaluations_of(history),
        evaluation_note="",
        advice=(*run_advice(history), *waiting_advice(waiting)),
        runbook=runbook_of(history, None),
        commands=run_commands(history),
        unknown_facts=history.unknown_facts,
    )


def _plain_timeline(history: RunHistory) -> tuple[TimelineRow, ...]:
    rows: list[TimelineRow] = []
    for moment in history.timeline:
        gap_s = (moment.at - rows[-1].at).total_seconds() if rows else 0.0
        rows.append(TimelineRow(at=moment.at, gap_seconds=gap_s, gap="", text=moment.text))
    return tuple(rows)
