"""An explanation as a document of titled blocks; text and Markdown only lay it out."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.history.explain.blocks import Block, Commands, Lines, Section
from trackway_common.history.explain.document_course import attempts_table, cost_pairs, timeline_table, where_blocks
from trackway_common.history.explain.document_parts import (
    checkpoint_pairs,
    decision_pairs,
    evaluation_lines,
    evidence_blocks,
    ran_pairs,
    second_look_pairs,
    waiting_pairs,
)
from trackway_common.history.explain.model import Explanation
from trackway_common.history.explain.sections import (
    Verdict,
)
from trackway_common.history.wording import date_text


def headline(explanation: Explanation) -> str:
    """Reason and subject."""
    of_run = f"run {explanation.run_id}"
    subject = f"attempt {explanation.attempt} of {of_run}" if explanation.attempt else of_run
    return f"{explanation.verdict.headline}  {subject}"


def byline(explanation: Explanation) -> str:
    """Whose run it is, and how sure the verdict is."""
    owner = f"owner {explanation.ran.owner}" if explanation.ran and explanation.ran.owner else ""
    whose = " / ".join(part for part in (explanation.project, explanation.model_family) if part)
    return " · ".join(part for part in (whose, owner, *_certainty(explanation.verdict)) if part)


def sections(explanation: Explanation) -> tuple[Section, ...]:
    """The document, without sections that have nothing to say."""
    return tuple(section for section in _sections(explanation) if section.blocks)


def _sections(explanation: Explanation) -> Iterator[Section]:
    x = explanation
    yield _section("Fields to correct", _violations(x))
    yield _section("Judged again", second_look_pairs(x.judged_again) if x.judged_again else None)
    yield _section("Waiting", waiting_pairs(x.waiting) if x.waiting else None)
    yield _section("Attempts", attempts_table(x.attempts) if x.attempts else None)
    yield _section("Evidence", *(evidence_blocks(x.evidence) if x.evidence else ()))
    yield _section("What to do", Lines(items=advice_lines(x)) if advice_lines(x) else None)
    yield _section(f"Timeline, {_day(x)} UTC", timeline_table(x.timeline) if x.timeline else None)
    yield _section("Checkpoints", checkpoint_pairs(x.checkpoints) if x.checkpoints else None)
    yield _section("What was decided", decision_pairs(x.decision) if x.decision else None)
    yield _section("What ran", ran_pairs(x.ran) if x.ran else None)
    yield _section("Where", *(where_blocks(x.where) if x.where else ()))
    yield _section("Cost", cost_pairs(x.cost) if x.cost and x.cost.accelerators else None)
    yield _section("Evaluation", evaluation_lines(x.evaluations, x.evaluation_note))
    yield _section("Look further", _commands(x))
    yield _section("Limits", _limits(x))


def advice_lines(explanation: Explanation) -> tuple[str, ...]:
    """Hints, and where the runbook lies."""
    runbook = (f"Runbook: {explanation.runbook}",) if explanation.runbook else ()
    return (*explanation.advice, *runbook)


def _section(title: str, *blocks: Block | None) -> Section:
    return Section(title=title, blocks=tuple(block for block in blocks if block is not None))


def _certainty(verdict: Verdict) -> tuple[str, ...]:
    if verdict.confidence is None:
        return ()
    return f"domain {verdict.domain.lower()}", f"confidence {verdict.confidence:.0%}"


def _day(explanation: Explanation) -> str:
    return date_text(explanation.timeline[0].at)[:10] if explanation.timeline else ""


def _commands(explanation: Explanation) -> Commands | None:
    items = tuple((c.purpose, c.command) for c in explanation.commands)
    return Commands(items=items) if items else None


def _violations(explanation: Explanation) -> Lines | None:
    items = tuple(f"{v.field}: {v.description}" for v in explanation.violations)
    return Lines(items=items) if items else None


def _limits(explanation: Explanation) -> Lines | None:
    if not explanation.unknown_facts:
        return None
    known_at = date_text(explanation.as_of)
    text = f"{explanation.unknown_facts} facts of a newer schema were passed over ({known_at}): upgrade this client."
    return Lines(items=(text,))
