"""Checkpoints used and produced, what was lost, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from trackway_common.history.explain.sections import (
    CheckpointSection,
    Cost,
    Spending,
)
from trackway_common.history.explain.subject import Subject
from trackway_common.history.model import CheckpointHistory
from trackway_common.history.receipt.course_columns import capture_name, commits_of
from trackway_common.history.receipt.seconds import KEEPS_ALL, SecondsColumns
from trackway_common.history.wording import checkpoint_name, count_text


def checkpoints_of(subject: Subject) -> CheckpointSection | None:
    """What was used, produced and lost; None of an attempt that was refused."""
    attempt, lineage = subject.attempt, subject.receipt.lineage
    if attempt.placed is None:
        return None
    return CheckpointSection(
        resumed_from=lineage.resumed_from,
        resumed_from_step=lineage.resumed_from_step,
        produced=lineage.produced,
        last_committed=lineage.last_committed,
        last_committed_step=lineage.last_committed_step,
        in_flight=_in_flight(subject),
        steps_lost=lineage.steps_lost,
        gpu_seconds_lost=subject.receipt.seconds.lost_seconds * subject.receipt.money.accelerators,
        notes=tuple(_notes(subject)),
    )


def cost_of(subject: Subject) -> Cost:
    """What the attempt took."""
    receipt = subject.receipt
    return Cost(
        gpu_seconds=receipt.money.gpu_seconds,
        amount=receipt.money.cost,
        currency=receipt.spec.shape.currency,
        price=receipt.spec.shape.price,
        price_since=receipt.spec.shape.price_since,
        accelerators=receipt.money.accelerators,
        accelerator_kind=receipt.spec.shape.accelerator_kind,
        queue_seconds=receipt.time.queue_seconds,
        wall_seconds=receipt.seconds.wall_seconds,
        spent=tuple(_spendings(receipt.seconds)),
    )


def _spendings(split: SecondsColumns) -> Iterator[Spending]:
    for field in fields(split):
        seconds = getattr(split, field.name)
        if seconds > 0 and field.name != "wall_seconds":
            yield Spending(name=field.name.removesuffix("_seconds").replace("_", " "), seconds=seconds)


def _in_flight(subject: Subject) -> tuple[str, ...]:
    """Captures that were neither committed nor given up, as far as the facts go."""
    settled = {checkpoint_name(c.committed.checkpoint) for c in subject.history.checkpoints}
    settled |= {capture_name(abandoned) for abandoned in subject.attempt.abandoned}
    names = [capture_name(capture) for capture in subject.attempt.captures]
    return tuple(name for name in names if name not in settled)


def _notes(subject: Subject) -> list[str]:
    attempt, lineage = subject.attempt, subject.receipt.lineage
    notes = (
        [f"passed over: {item.source}: {item.excerpt}" for item in attempt.resume.passed_over] if attempt.resume else []
    )
    notes += [f"step {gone.step} abandoned: {gone.why}" for gone in attempt.abandoned]
    notes += [_quarantine(c) for c in _mine(subject) if c.quarantined_why is not None]
    finished = attempt.ended is not None and attempt.ended.reason in KEEPS_ALL
    if attempt.running is None and attempt.ended is not None and not finished:
        notes.append("It never reported a step, so nothing is known of how far it came.")
    if not attempt.captures and not lineage.produced and attempt.ended is not None:
        notes.append(_never_saved(subject, finished=finished))
    return notes


def _never_saved(subject: Subject, *, finished: bool) -> str:
    if finished:
        return "It never captured a checkpoint: there is nothing to evaluate or to go on from."
    step = subject.receipt.lineage.last_committed_step
    where = f"step {step}" if step is not None else "step 0"
    after = subject.next
    consequence = f"attempt {after.attempt} began again at {where}" if after else f"a retry begins at {where}"
    return f"It never captured a checkpoint, so everything that it did is lost: {consequence}."


def _mine(subject: Subject) -> tuple[CheckpointHistory, ...]:
    return commits_of(subject.history, subject.attempt.placed.epoch if subject.attempt.placed else None)


def _quarantine(checkpoint: CheckpointHistory) -> str:
    name = checkpoint_name(checkpoint.committed.checkpoint)
    return f"{name} was quarantined: {checkpoint.quarantined_why}"


def lost_text(section: CheckpointSection) -> str:
    """One line on what was lost."""
    if section.steps_lost == 0 and section.gpu_seconds_lost <= 0:
        return "nothing"
    steps = count_text(section.steps_lost, "step") if section.steps_lost else "an unknown number of steps"
    since = section.last_committed_step
    where = f"after step {since}" if since is not None else "from the beginning"
    return f"{steps} {where}, {section.gpu_seconds_lost:,.1f} accelerator-seconds"
