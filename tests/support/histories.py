"""Histories of runs as they may happen, for tests of what is computed from them."""

from __future__ import annotations

import uuid
from datetime import timedelta

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from trackway_common import events as e
from trackway_common.events import PhaseSeconds, TerminationReason
from trackway_common.testing.run_clocks import clocks
from trackway_common.testing.run_facts import START, RunFacts, checkpoint_ref
from trackway_common.testing.run_steps import captured, committed, ended, kill_evidence, placed, started, submitted

GAPS = st.floats(0, 30).map(lambda s: round(s, 6))
ENDS = st.sampled_from((TerminationReason.UNKNOWN_KILL, TerminationReason.STALLED, TerminationReason.PREEMPTED_SPOT))


TIMES = st.integers(-20_000_000, 100_000_000).map(lambda us: START + timedelta(microseconds=us))
SECONDS = st.floats(0, 60)


def phases() -> st.SearchStrategy[PhaseSeconds]:
    return st.builds(clocks, TIMES, wait=SECONDS, stall=SECONDS, step=SECONDS, restore=SECONDS)


@st.composite
def histories(draw: st.DrawFn, run_id: str) -> RunFacts:
    """A run of up to three attempts: commits, captures that are never committed, quarantines, any resume target."""
    facts, slot, kept = submitted(RunFacts(run_id)), 1, [None]
    for number in range(1, draw(st.integers(1, 3)) + 1):
        resume = draw(st.sampled_from(kept))
        started(placed(facts, number, queue_s=draw(GAPS)), number, resume)
        step = resume.step if resume else 0
        for _ in range(draw(st.integers(0, 3))):
            step += draw(st.integers(1, 9))
            word = draw(st.none() | phases())
            facts.after(draw(GAPS))
            if not draw(st.booleans()):
                captured(facts, number, step, word)
                continue
            slot += 1
            committed(facts, number, step, slot, resume, word)
            kept.append(checkpoint_ref(step, number, slot, run_id))
            if draw(st.integers(0, 9)) == 0:
                facts.checkpoint(e.CheckpointQuarantined(commit_slot=slot, why="damaged"))
        if draw(st.booleans()):
            facts.after(draw(GAPS)).attempt(number, e.AttemptStopping(why="told to", stopping_at=facts.now))
        last_word = draw(st.none() | phases())
        ended(
            facts.after(draw(GAPS)),
            number,
            reason=draw(ENDS),
            evidence=kill_evidence(facts.now - timedelta(seconds=draw(GAPS))),
            phases=last_word,
            last_progress_at=last_word.measured_at if last_word else None,
        )
    return facts


def some_histories(count: int) -> list[RunFacts]:
    """The same histories every time, each of a run of its own, by ascending run id."""
    made: list[RunFacts] = []

    @seed(0)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate])
    @given(data=st.data())
    def draw(data: st.DataObject) -> None:
        made.append(data.draw(histories(str(uuid.UUID(int=(0x0199F3A1 << 96) + len(made))))))

    draw()
    return made
