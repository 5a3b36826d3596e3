"""People's SQL on a real engine: what is allowed works, and nothing else is reached."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import grpc.aio
import pytest
from trackway_common.clickhouse import ClickHouse, StatementRefused
from trackway_common.errors import CommandRejected
from trackway_common.rpc_errors import as_trackway_error
from trackway_common.settings import ClickHouseSettings
from trackway_common.testing.run_facts import RUN_ID
from trackway_observer.history.json_rows import FORMAT
from trackway_observer.history.people_sql import PeopleSql, RowPage, SqlLimits
from trackway_observer.history.sql import guard
from trackway_observer.history.sql.views import CONTRACT_VIEWS
from trackway_proto.v1 import history_service_pb2 as pb

from tests.integration.observer.serving import filled_read_model, history, resumed_run
from tests.support.command_lines import runbook_queries
from tests.support.read_model import ReadModelServer

SEED_QUERY = """\
select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts
where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;
"""


@pytest.fixture(scope="module")
def settings(server: ReadModelServer) -> ClickHouseSettings:
    return filled_read_model(server.settings("history_sql"), resumed_run())


@pytest.fixture
async def database(settings: ClickHouseSettings) -> AsyncIterator[ClickHouse]:
    opened = ClickHouse(settings)
    yield opened
    await opened.close()


async def asked(database: ClickHouse, sql: str, limits: SqlLimits | None = None, max_rows: int = 0) -> list[RowPage]:
    return [page async for page in PeopleSql(database, limits or SqlLimits()).run(sql, max_rows)]


async def rows(database: ClickHouse, sql: str) -> list[object]:
    return [json.loads(row) for page in await asked(database, sql) for row in page.rows_json]


@pytest.mark.parametrize("query", runbook_queries(), ids=lambda query: query[:60])
async def test_every_query_of_the_runbooks_is_answered(database: ClickHouse, query: str) -> None:
    assert isinstance(await rows(database, query.replace("'RUN'", f"'{RUN_ID}'")), list)


async def test_the_seed_query_over_grpc(database: ClickHouse) -> None:
    async with history(database) as stub:
        parts = [part async for part in stub.Query(pb.QueryRequest(sql=SEED_QUERY.replace("7 days", "100000 days")))]
    assert list(parts[0].columns) == ["termination_reason", "attempts", "gpu_hours"]
    assert list(parts[0].types) == ["String", "UInt64", "Float64"]
    found = [json.loads(row) for part in parts for row in part.rows_json]
    assert [row[:2] for row in found] == [["UNKNOWN_KILL", 1], ["COMPLETED", 1]]
    assert not any(part.truncated for part in parts)
    assert guard(SEED_QUERY)


@pytest.mark.parametrize("view", sorted(CONTRACT_VIEWS))
async def test_every_contract_view_can_be_read(database: ClickHouse, view: str) -> None:
    [page] = await asked(database, f"select * from {view}")
    assert page.columns
    assert len(page.columns) == len(page.types)


async def test_values_are_exact_json(database: ClickHouse) -> None:
    [row] = await rows(
        database,
        "select toUInt64(18446744073709551615), 9007199254740992, toDecimal64('1.25', 2), nan, -inf, null, true,"
        " toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC'), toDate('2026-01-02'), unhex('ff00') || '\\n\"',"
        " [1, 2], (1, 'x'), map('k', 1), toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') from events limit 1",
    )
    assert row == [
        "18446744073709551615",
        9007199254740992,
        1.25,
        "nan",
        "-inf",
        None,
        True,
        "2026-01-02T03:04:05.678Z",
        "2026-01-02",
        '\ufffd\x00\n"',
        [1, 2],
        [1, "x"],
        {"k": 1},
        "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
    ]


WORKS = [
    ("with a as (select run_id from training_runs), b as (select * from a) select count() from b", [[1]]),
    ("with training_runs as (select 'mine' as run_id) select run_id from training_runs", [["mine"]]),
    ("select attempt from training_attempts where run_id in (select run_id from events) order by 1", [[1], [2]]),
    ("select count() from training_attempts a join training_runs r using (run_id)", [[2]]),
    ("select attempt, row_number() over (order by attempt desc) from training_attempts order by 1", [[1, 2], [2, 1]]),
    ("select quantile(0.5)(attempt), countIf(attempt > 1), uniq(run_id) from training_attempts", [[1.5, 1, 1]]),
    ("select arrayMap(p -> lower(substring(p, 1, 1)), produced) from training_attempts limit 1", [[["s", "s"]]]),
    ("select p from training_attempts array join produced as p where attempt = 2", [["s000000120-e0002-n120"]]),
    ("select JSONExtractInt(config_json, 'steps') from training_runs", [[120]]),
    ("select attempt > 1 ? 'later' : 'first' from training_attempts order by attempt", [["first"], ["later"]]),
    ("select toString(toDate(started_at)) from training_attempts limit 1", [["2026-11-20"]]),
    ("from training_attempts select max(attempt)", [[2]]),
    ("(select 1) union all (select 1)", [[1], [1]]),
    ("select 1 -- one\n/* two */ + 1;", [[2]]),
    ("select 1 where false", []),
]


@pytest.mark.parametrize(("sql", "found"), WORKS)
async def test_what_people_write_works(database: ClickHouse, sql: str, found: list[object]) -> None:
    assert await rows(database, sql) == found


async def test_more_rows_than_asked_for_are_cut_and_said_to_be_there(database: ClickHouse) -> None:
    sql = "select arrayJoin(range(100000)) as n order by n"
    pages = await asked(database, sql, max_rows=10)
    assert [row for page in pages for row in page.rows_json] == [f"[{n}]" for n in range(10)]
    assert pages[-1].truncated
    pages = await asked(database, "select arrayJoin(range(10))", max_rows=10)
    assert sum(len(page.rows_json) for page in pages) == 10
    assert not pages[-1].truncated


HEAVY = (
    "select sum(sipHash64(a, b)) from (select arrayJoin(range(1000000)) as a) x cross join"
    " (select arrayJoin(range(100000)) as b) y"
)


@pytest.mark.parametrize(
    ("sql", "limits", "said"),
    [
        (HEAVY, SqlLimits(seconds=1), "it takes longer than 1 s"),
        (
            "select groupArray(n) from (select arrayJoin(range(9000000)) as n)",
            SqlLimits(memory_bytes=64 << 20),
            "64 MiB",
        ),
        ("select count(payload) from events", SqlLimits(rows_read=5), "it reads too many rows"),
        ("select rnid from training_runs", SqlLimits(), "rnid"),
        ("select sum(run_id) from events", SqlLimits(), "String"),
    ],
)
async def test_what_takes_too_much_or_is_wrong_is_told(
    database: ClickHouse, sql: str, limits: SqlLimits, said: str
) -> None:
    with pytest.raises(CommandRejected) as refusal:
        await asked(database, sql, limits)
    assert said in refusal.value.message
    assert "\n" not in refusal.value.message


async def test_a_refusal_over_grpc_names_the_field(database: ClickHouse) -> None:
    async with history(database) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            _ = [part async for part in stub.Query(pb.QueryRequest(sql="select * from training_run"))]
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    error = as_trackway_error(failed.value)
    assert isinstance(error, CommandRejected)
    assert "did you mean training_runs?" in error.message
    assert [violation.field for violation in error.violations] == ["sql"]


@pytest.mark.parametrize(
    "statement",
    [
        "create table mine (a Int8) engine = Memory",
        "insert into events_state (run_id) values ('x')",
        "drop view events",
        "select * from file('/etc/hostname', 'LineAsString')",
        "select * from url('http://127.0.0.1:1/', 'LineAsString')",
        "select 1 settings max_execution_time = 0",
    ],
)
async def test_the_engine_itself_refuses_what_a_guard_might_let_through(database: ClickHouse, statement: str) -> None:
    settings = PeopleSql(database, SqlLimits())._settings(10)
    with pytest.raises(StatementRefused, match="READONLY"):
        async for _ in database.stream(statement, FORMAT, settings=settings):
            pass
