"""An explanation as an incident report that is filled in as far as facts go: the rest is for its owners."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import FailureDomain
from trackway_common.history.explain.blocks import Block, Lines, Pairs, Table
from trackway_common.history.explain.document import sections
from trackway_common.history.explain.losses import lost_text
from trackway_common.history.explain.markdown import as_lines, escaped
from trackway_common.history.explain.model import Explanation
from trackway_common.history.explain.sections import CheckpointSection
from trackway_common.history.wording import amount_text, count_text, date_text, number_text, seconds_text

BLANK = "______"
"""For a person to fill in: no fact says it."""
_CAUSE, _PLACE = ("Evidence",), ("What ran", "Where")


def as_postmortem(explanation: Explanation) -> str:
    """Fill the template in; ends with a newline."""
    x = explanation
    lines = [f"# Incident: {escaped(x.verdict.headline)} in {escaped(x.model_family or x.project or 'a run')}", ""]
    lines += as_lines(_head(x))
    for title, blocks in _chapters(x):
        lines += ["", f"## {title}"]
        for block in blocks:
            lines += ["", *as_lines(block)]
    return "\n".join(lines) + "\n"


def _head(x: Explanation) -> Block:
    owner = x.ran.owner if x.ran else ""
    return Pairs(
        items=(
            ("status", f"draft, filled in from the log as of {date_text(x.as_of)}"),
            ("about", x.name),
            ("owner of the run", owner or "not recorded"),
            ("severity", BLANK),
            ("author", BLANK),
        )
    )


def _chapters(x: Explanation) -> Iterator[tuple[str, tuple[Block, ...]]]:
    yield "Summary", (Lines(items=tuple(line for line in (x.verdict.sentence, x.verdict.outcome) if line)),)
    yield "Impact", (Pairs(items=tuple(_impact(x))),)
    yield "Timeline (UTC)", (_timeline(x),)
    yield "Root cause", (Pairs(items=tuple(_verdict(x))), *_blocks(x, _CAUSE))
    yield "What went well", (Lines(items=tuple(_well(x)) or ("Nothing that a fact shows.",)),)
    yield "What did not", (Lines(items=tuple(_badly(x)) or ("Nothing that a fact shows.",)),)
    yield "What Trackway did", (Lines(items=tuple(_did(x)) or ("Nothing was decided yet.",)),)
    yield "What ran, and where", _blocks(x, _PLACE)
    yield "Action items", (_actions(x),)
    yield "Commands", tuple(block for s in sections(x) if s.title == "Look further" for block in s.blocks)


def _blocks(x: Explanation, titles: tuple[str, ...]) -> tuple[Block, ...]:
    return tuple(block for section in sections(x) if section.title in titles for block in section.blocks)


def _impact(x: Explanation) -> Iterator[tuple[str, str]]:
    if x.checkpoints:
        yield "lost", lost_text(x.checkpoints)
    lost = sum(line.steps_lost for line in x.attempts)
    if len(x.attempts) > 1:
        held = sum(line.gpu_seconds for line in x.attempts)
        yield "over all attempts", f"{count_text(lost, 'step')} lost of {held:,.1f} accelerator-seconds held"
    if x.cost and x.cost.accelerators:
        paid = f" = {amount_text(x.cost.amount)} {x.cost.currency}" if x.cost.currency else ""
        yield "this attempt took", f"{x.cost.gpu_seconds:,.1f} accelerator-seconds{paid}"
    if (delay_s := _until_resumed(x)) is not None:
        yield "from its end to the next placement", seconds_text(delay_s)
    yield "people or products affected", BLANK


def _until_resumed(x: Explanation) -> float | None:
    """Seconds from the attempt's end to the placement of the next, where the timeline has both."""
    ends = [row.at for row in x.timeline if row.text.startswith("attempt ended")]
    placed = [row.at for row in x.timeline if row.text.startswith("attempt ") and row.text.endswith("placed")]
    return (placed[-1] - ends[-1]).total_seconds() if ends and placed else None


def _timeline(x: Explanation) -> Table:
    rows = ((date_text(r.at), seconds_text(r.gap_seconds) if r.gap else "", r.gap, r.text) for r in x.timeline)
    return Table(header=("at", "after", "spent on", "what happened"), rows=tuple(rows), right=frozenset({"after"}))


def _verdict(x: Explanation) -> Iterator[tuple[str, str]]:
    confidence = "" if x.verdict.confidence is None else f", confidence {x.verdict.confidence:.0%}"
    domain = f" (domain {x.verdict.domain.lower()}{confidence})" if x.verdict.domain else ""
    yield "reason", f"{x.verdict.headline}{domain}"
    yield "cause", x.verdict.sentence
    if x.where and x.where.blamed:
        yield "blamed", x.where.blamed
    if x.ran and x.ran.compared_with is not None:
        changed = "; ".join(f"{c.field} {c.before} → {c.after}" for c in x.ran.changes) or "nothing"
        yield f"changed since attempt {x.ran.compared_with}", changed
    yield "why it could happen", BLANK


def _well(x: Explanation) -> Iterator[str]:
    if x.checkpoints and x.checkpoints.last_committed_step is not None:
        yield f"Step {x.checkpoints.last_committed_step} was committed, so everything up to it is kept."
    decided = next((row for row in x.timeline if row.text.startswith("decided: ")), None)
    if decided is not None:
        yield f"What follows was decided {seconds_text(decided.gap_seconds)} after the attempt had ended."
    if "resumed at step" in x.verdict.outcome or x.verdict.headline == "SUCCEEDED":
        yield x.verdict.outcome
    yield from (f"Evaluation {line.pack}: {line.state}." for line in x.evaluations if line.state == "PASSED")


def _badly(x: Explanation) -> Iterator[str]:
    if x.checkpoints:
        yield from _badly_kept(x.checkpoints)
    if x.evidence:
        yield from x.evidence.notes
    if x.verdict.domain == FailureDomain.UNKNOWN:
        yield "Nothing that was collected says who or what began it."
    if x.verdict.confidence is not None and x.verdict.confidence < 0.7:
        yield f"The verdict is not sure: confidence {number_text(x.verdict.confidence)}."
    if x.ran:
        yield from (f"Environment: {note}." for note in x.ran.environment_notes if "differs" in note)
    if x.where and x.where.takeovers:
        yield f"The agent was lost and took the attempt over again {count_text(x.where.takeovers, 'time')}."
    yield from (f"Evaluation {line.pack}: {line.state}." for line in x.evaluations if line.state != "PASSED")


def _badly_kept(section: CheckpointSection) -> Iterator[str]:
    if section.steps_lost or section.gpu_seconds_lost > 0:
        yield f"Lost: {lost_text(section)}."
    yield from (f"{name} was captured and never committed." for name in section.in_flight)
    yield from section.notes


def _did(x: Explanation) -> Iterator[str]:
    decision = x.decision
    if decision is None:
        return
    yield f"Decided {decision.move}: {decision.why}"
    if decision.ledger and (decision.budget or decision.spent):
        of = "no limit" if decision.budget < 0 else f"{decision.spent} of {decision.budget} spent"
        yield f"Budget {decision.ledger}: {of} {decision.counting}".rstrip()
    if decision.next_attempt:
        changed = "; ".join(f"{c.field} {c.before} → {c.after}" for c in decision.changes) or "nothing"
        waited = f", after a backoff of {seconds_text(decision.backoff_seconds)}" if decision.backoff_seconds else ""
        yield f"Attempt {decision.next_attempt} was queued{waited}; changed: {changed}."


def _actions(x: Explanation) -> Table:
    texts = [*x.advice, *((f"Follow {x.runbook}",) if x.runbook else ()), BLANK]
    return Table(header=("action", "owner", "due"), rows=tuple((text, BLANK, BLANK) for text in texts))
