"""An attempt's timeline: few marks, and what the time between them was spent on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from trackway_common.events import CausalRole, RunReleased
from trackway_common.history.explain.sections import (
    TimelineRow,
)
from trackway_common.history.explain.subject import Subject
from trackway_common.history.model import AttemptHistory
from trackway_common.history.receipt.course_columns import capture_name, kept_captures
from trackway_common.history.receipt.outcome_columns import ended_at, outcome_columns
from trackway_common.history.receipt.seconds import HANGS
from trackway_common.history.wording import count_text, moment


class Mark(NamedTuple):
    """A point in time, and the name of the stretch that leads to it."""

    at: datetime | None
    gap: str
    text: str


def timeline_of(subject: Subject) -> tuple[TimelineRow, ...]:
    """Marks in their order of meaning; each names the stretch before it."""
    marks = [*_before_steps(subject), *_steps(subject), *_end(subject), *_after(subject)]
    rows: list[TimelineRow] = []
    for mark in marks:
        if mark.at is None:
            continue
        gap_s = (mark.at - rows[-1].at).total_seconds() if rows else 0.0
        rows.append(TimelineRow(at=mark.at, gap_seconds=gap_s, gap=mark.gap if rows else "", text=mark.text))
    return tuple(rows)


def _before_steps(subject: Subject) -> list[Mark]:
    attempt = subject.attempt
    queued = attempt.queued[0].queued_at if attempt.queued else None
    placed, starting, started, running = attempt.placed, attempt.starting, attempt.started, attempt.running
    resumes = f", {_resume_text(attempt)}" if attempt.resume else ""
    return [
        Mark(queued, "", f"queued for attempt {attempt.attempt}"),
        Mark(placed.placed_at if placed else None, "queue", f"placed on pool {placed.pool}" if placed else ""),
        Mark(starting.starting_at if starting else None, "to the agent", "agent took it"),
        Mark(
            started.started_at if started else None,
            "start of ranks",
            f"{count_text(started.world_size, 'rank')} started{resumes}" if started else "",
        ),
        Mark(
            running.first_step_at if running else None,
            "to the first step",
            f"first step: {running.first_step}" if running else "",
        ),
    ]


def _resume_text(attempt: AttemptHistory) -> str:
    checkpoint = attempt.resume.checkpoint if attempt.resume else None
    return f"resuming at step {checkpoint.step}" if checkpoint else "from step 0"


def _steps(subject: Subject) -> list[Mark]:
    kept = kept_captures(subject.history, subject.attempt)
    names = {capture_name(capture) for capture in kept}
    lost = [c for c in subject.attempt.captures if capture_name(c) not in names]
    marks = []
    if len(kept) > 1:
        more = count_text(len(kept) - 2, "commit")
        between = f", then {more} more" if len(kept) > 2 else ""
        marks.append(Mark(kept[0].started_at, "training, kept", f"step {kept[0].step} captured and committed{between}"))
    if kept:
        last = kept[-1]
        marks.append(Mark(last.started_at, "training, kept", f"step {last.step} captured, the last commit"))
    marks += [Mark(c.started_at, "training", f"step {c.step} captured, never committed") for c in lost[-1:]]
    return marks


def _end(subject: Subject) -> list[Mark]:
    attempt, receipt = subject.attempt, subject.receipt
    outcome, end = receipt.outcome, ended_at(subject.attempt)
    stretch = "training, lost" if receipt.seconds.lost_seconds > 0 else "training, kept"
    if attempt.running is None:
        stretch = "running, no step" if attempt.started else "before the start"
    marks, stretch = _last_progress(attempt, stretch)
    seen = [*_told_to_stop(attempt), *_failure(attempt, outcome.failed_at, end)]
    for at, after, text in sorted(seen):
        marks.append(Mark(at, stretch, text))
        stretch = after
    reason = outcome_columns(replace(attempt, reclassified=None)).termination_reason
    marks.append(Mark(end, stretch, f"attempt ended: {reason}"))
    return marks


def _told_to_stop(attempt: AttemptHistory) -> list[tuple[datetime, str, str]]:
    stopping = attempt.stopping
    return [(stopping.stopping_at, "to stop", f"told to stop: {stopping.why}")] if stopping else []


def _failure(
    attempt: AttemptHistory, failed_at: datetime | None, end: datetime | None
) -> list[tuple[datetime, str, str]]:
    if not failed_at or not end or failed_at > end:
        return []
    evidence = attempt.ended.evidence if attempt.ended else ()
    first = next((o.source for o in evidence if o.role is CausalRole.INITIATING), "")
    return [(failed_at, "to close it", f"failure observed: {first}")]


def _releases(subject: Subject) -> list[RunReleased]:
    """Releases between this attempt's decision and the next attempt."""
    decision, after = subject.attempt.decision, subject.next
    if decision is None:
        return []
    until = after.placed.placed_at if after and after.placed else None
    released = [r for r in subject.history.releases if r.released_at >= decision.decided_at]
    return [r for r in released if until is None or r.released_at <= until]


def _last_progress(attempt: AttemptHistory, stretch: str) -> tuple[list[Mark], str]:
    """The newest word of any rank, and what the stretch behind it was."""
    ended = attempt.ended
    at = moment(ended.last_progress_at) if ended else None
    earlier = max((c.started_at for c in attempt.captures), default=at)
    if ended is None or at is None or attempt.running is None or (earlier and at < earlier):
        return [], stretch
    behind = "nothing moved" if ended.reason in HANGS else "after the last word"
    return [Mark(at, stretch, f"last word of a rank, at step {ended.last_step}")], behind


def _after(subject: Subject) -> list[Mark]:
    decision, after = subject.attempt.decision, subject.next
    marks = [Mark(decision.decided_at, "to decide", f"decided: {decision.move}")] if decision else []
    marks += [Mark(r.released_at, "held", f"released by {r.actor}: {r.reason}") for r in _releases(subject)]
    if after and after.placed:
        backoff = decision and moment(decision.not_before) and decision.backoff_seconds > 0
        gap = "backoff and queue" if backoff else "queue"
        marks.append(Mark(after.placed.placed_at, gap, f"attempt {after.attempt} placed"))
    return marks
