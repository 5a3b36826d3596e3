"""The split of time in SQL is the one of the facts, in any history."""

from __future__ import annotations

import pytest
from trackway_common.clickhouse import ClickHouse
from trackway_common.event_log import InMemoryEventLog
from trackway_common.history.fold import fold_run
from trackway_common.history.receipt import attempt_receipt, columns_of
from trackway_common.testing.run_facts import append_commits

from tests.integration.observer.projecting import project
from tests.support.histories import some_histories

RUNS = 30


async def test_seconds_in_sql_equal_those_of_the_facts_in_any_history(database: ClickHouse) -> None:
    told = some_histories(RUNS)
    log = InMemoryEventLog()
    for facts in told:
        await append_commits(log, facts.commits, run_id=facts.run_id)
    await project(log, database)
    rows = await database.records("select * from training_attempts order by run_id, attempt")
    assert len(rows) >= RUNS
    shown = iter(rows)
    for facts in told:
        history = fold_run(facts.run_id, facts.facts_only)
        for attempt in history.attempts:
            row, expected = next(shown), columns_of(attempt_receipt(history, attempt.attempt).seconds)
            assert (row["run_id"], row["attempt"]) == (facts.run_id, attempt.attempt)
            assert {name: row[name] for name in expected} == pytest.approx(dict(expected), abs=1e-6)
