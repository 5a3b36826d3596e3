"""Every fact of a run has a line for people."""

from __future__ import annotations

import dataclasses
import typing
from datetime import datetime

import pytest
from trackway_common import events
from trackway_scheduler.domain.summaries import summary

from tests.unit.scheduler.builders import NOW, Given, ended, running, submitted

NOT_OF_A_RUN = {"OwnershipClaimed", "DatasetRegistered", "EvaluationPackRegistered", "PoolObserved"}


def example(kind: type):
    """The fact with nothing but what it requires."""
    hints = typing.get_type_hints(kind)
    required = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return kind(**{name: NOW if hints[name] is datetime else example(hints[name]) for name in required})


@pytest.mark.parametrize("kind", typing.get_args(events.Fact), ids=lambda kind: kind.__name__)
def test_every_fact_of_a_run_has_one_line(kind):
    line = summary(example(kind))
    assert bool(line) is (kind.__name__ not in NOT_OF_A_RUN)
    assert "\n" not in line


def test_the_lines_of_a_retry_tell_the_budget():
    given = Given(*running()).when(ended(events.TerminationReason.PROCESS_CRASH))
    decided, queued = given.made
    assert summary(decided).startswith("retry 1 of 2 in 30 s after PROCESS_CRASH")
    assert summary(queued) == "attempt 2 queued, not before 30 s from now"
    assert summary(submitted()[0]) == "submitted by ada: 2 ranks on local-cpu-2x"
