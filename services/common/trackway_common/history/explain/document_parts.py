"""Sections about inputs, evidence, checkpoints, decisions, waits and evaluations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from trackway_common.events import Change, Progress
from trackway_common.history.explain.blocks import Block, Lines, Pairs, Quote, Table
from trackway_common.history.explain.losses import lost_text
from trackway_common.history.explain.sections import (
    Cascade,
    CheckpointSection,
    Decision,
    EvaluationLine,
    EvidenceSection,
    Observation,
    Ran,
    SecondLook,
    Waiting,
)
from trackway_common.history.wording import clock_text, date_text, one_line, seconds_text, short_digest

EXCERPT, CASCADE_EXCERPT = 300, 160
QUOTED_LINES = 12
_UNPACKED = re.compile(r"(?<![^\s\"'(])/\S*/code/sha256-[0-9a-f]{64}[^/\s]*/")
_PROGRESS: Mapping[str, str] = {
    Progress.ADVANCED: "a checkpoint was newly committed, so budgets that count without progress begin anew",
    Progress.NONE: "no checkpoint was newly committed",
}


def ran_pairs(ran: Ran) -> Pairs:
    """Program, configuration, code, environment, data."""
    sure = "deterministic" if ran.deterministic else "not deterministic"
    dirty = " with local changes" if ran.dirty else ""
    git = f", git {ran.git_commit[:12]}{dirty}" if ran.git_commit else ""
    pinned = f"{ran.environment_kind} {short_digest(ran.environment_digest)}, Python {ran.python_version}"
    items = [
        ("entry point", f"{ran.entrypoint} ({ran.entrypoint_kind}), seed {ran.seed}, {sure}"),
        ("config", f"{short_digest(ran.config_digest)}  {_hyperparameters(ran.hyperparameters_json)}"),
        *_changes(ran),
        ("code", f"archive {short_digest(ran.code_digest)} of {ran.code_requested or 'an unnamed folder'}{git}"),
        ("environment", "; ".join((pinned, *ran.environment_notes))),
        *(("data", f"{d.name} {short_digest(d.digest)}{_weight(d.weight)}") for d in ran.data),
    ]
    items += [("experiment", ran.experiment)] if ran.experiment else []
    items += [("hypothesis", ran.hypothesis)] if ran.hypothesis else []
    return Pairs(items=tuple(items))


def evidence_blocks(section: EvidenceSection) -> tuple[Block, ...]:
    """For, against, and what merely followed; then the whole of what decided."""
    rows = [_observation("for", o) for o in section.supporting]
    rows += [_observation("against", o) for o in section.against]
    rows += [_observation("also seen", o) for o in section.undecided]
    rows += [_cascade(c) for c in section.cascades]
    rows += [("absent", "", "; ".join(section.silent), "")] if section.silent else []
    if not rows:
        return ()
    said = Lines(items=section.notes) if section.notes else None
    quoted = _quoted(section.supporting)
    quote = Quote(lines=quoted) if quoted else None
    table = Table(header=("", "authority", "observation", "at"), rows=tuple(rows))
    return tuple(block for block in (table, quote, said) if block is not None)


def _quoted(supporting: tuple[Observation, ...]) -> tuple[str, ...]:
    """The whole of what decided, else the first excerpt that has more than one line."""
    if whole := next((o.text for o in supporting if o.text), ""):
        return tuple(_in_archive(whole).splitlines())
    excerpts = (o.excerpt for o in supporting if "\n" in o.excerpt.strip())
    return tuple(_in_archive(next(excerpts, "")).splitlines()[:QUOTED_LINES])


def _in_archive(text: str) -> str:
    """Paths of the run's own code as they are in its archive: where a rank unpacked it says nothing."""
    return _UNPACKED.sub("", text)


def second_look_pairs(look: SecondLook) -> Pairs:
    """A newer classifier's verdict beside the first."""
    by = f"classifier {look.classifier_version} (before: {look.version_before or 'none'}), asked by {look.actor}"
    return Pairs(
        items=(
            ("reason", f"{look.reason} (domain {look.domain.lower()}, confidence {look.confidence:.0%})"),
            ("cause", look.cause),
            ("by", f"{by}, {date_text(look.at)}"),
            ("", "What was decided on the first verdict stays."),
        )
    )


def checkpoint_pairs(section: CheckpointSection) -> Pairs:
    """What was used, produced and lost."""
    resumed = section.resumed_from or "nothing: it started at step 0"
    items = [("resumed from", resumed), ("produced", ", ".join(section.produced) or "nothing")]
    if section.last_committed and section.last_committed not in section.produced:
        items.append(("last commit", section.last_committed))
    items += [("in flight", f"{name}: captured, neither committed nor given up") for name in section.in_flight]
    items.append(("lost", lost_text(section)))
    items += [("", note) for note in section.notes]
    return Pairs(items=tuple(items))


def decision_pairs(decision: Decision) -> Pairs:
    """The move and the budget that allowed or refused it."""
    number = decision.next_attempt
    move = f"{decision.move} as attempt {number}" if number else decision.move
    items = [("move", f"{move}, at {clock_text(decision.at)}"), ("why", decision.why)]
    if decision.ledger and (decision.budget or decision.spent):
        of = "no limit" if decision.budget < 0 else f"{decision.spent} of {decision.budget} spent"
        items.append(("budget", " ".join(part for part in (f"{decision.ledger}: {of}", decision.counting) if part)))
    if decision.progress:
        items.append(("progress", _PROGRESS.get(decision.progress, decision.progress.lower())))
    if decision.backoff_seconds:
        items.append(("backoff", seconds_text(decision.backoff_seconds)))
    if number:
        items += [("changed", text) for text in change_texts(decision.changes)] or [("changed", "nothing")]
    return Pairs(items=tuple(items))


def waiting_pairs(waiting: Waiting) -> Pairs:
    """Why the run does not run now."""
    items = [(waiting.token, waiting.sentence), ("since", date_text(waiting.since))]
    if waiting.not_before and waiting.not_before > waiting.since:
        items.append(("not before", date_text(waiting.not_before)))
    if waiting.ahead is not None:
        items.append(("position", f"{waiting.ahead + 1} in the queue of its pool"))
    if waiting.holders:
        items.append(("held by", ", ".join(waiting.holders)))
    return Pairs(items=tuple(items))


def evaluation_lines(evaluations: tuple[EvaluationLine, ...], note: str) -> Block | None:
    """What the evaluations found."""
    items: list[tuple[str, str]] = []
    for line in evaluations:
        tries = f" in {line.tries} tries" if line.tries > 1 else ""
        by = f", evaluator {line.evaluator_version}" if line.evaluator_version else ""
        items.append((line.pack, f"{line.state} on {line.checkpoint}{tries}{by}"))
        items += [("", text) for text in (*line.results, *line.gates, *line.failures)]
    if items:
        return Pairs(items=tuple(items))
    return Lines(items=(note,)) if note else None


def change_texts(changes: tuple[Change, ...]) -> list[str]:
    """``batch_size 16 → 8: why``."""
    return [f"{c.field} {c.before} → {c.after}{': ' + c.why if c.why else ''}" for c in changes]


def _changes(ran: Ran) -> list[tuple[str, str]]:
    if ran.compared_with is None:
        return [("changed", "nothing to compare with: the run's first attempt")]
    texts = change_texts(ran.changes) or ["nothing"]
    return [("changed", f"{text}, compared with attempt {ran.compared_with}") for text in texts]


def _hyperparameters(canonical: str) -> str:
    try:
        values = json.loads(canonical or "{}")
    except ValueError:
        return one_line(canonical, EXCERPT)
    if not isinstance(values, dict):
        return one_line(canonical, EXCERPT)
    texts = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    return one_line(" ".join(texts) or "no hyperparameters", EXCERPT)


def _weight(weight: float) -> str:
    return "" if weight == 1 else f" with weight {weight:g}"


def _observation(role: str, seen: Observation) -> tuple[str, ...]:
    blob = f" (whole text: {short_digest(seen.blob_digest)})" if seen.blob_digest else ""
    also = "" if len(seen.ranks) < 2 else f" (same on {_ranks_text(seen.ranks[1:])})"
    text = f"{seen.source}: {one_line(seen.excerpt, EXCERPT)}{also}{blob}"
    return role, _authority(seen.authority), text, clock_text(seen.at) if seen.at else ""


def _cascade(cascade: Cascade) -> tuple[str, ...]:
    ranks = f"{_ranks_text(cascade.ranks)}: " if cascade.ranks else ""
    times = f"{cascade.count} times, " if cascade.count > 1 else ""
    return "followed", cascade.role.lower(), f"{times}{ranks}{one_line(cascade.excerpt, CASCADE_EXCERPT)}", ""


def _ranks_text(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


def _authority(authority: str) -> str:
    return authority.lower().replace("_", " ")
