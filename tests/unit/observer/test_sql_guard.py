"""What people may ask in SQL, and what they are told when they may not."""

from __future__ import annotations

import pytest
from trackway_common.errors import CommandRejected
from trackway_observer.history.sql import guard

from tests.support.refused_sql import REFUSED

SEED_QUERY = """\
select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts
where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;
"""

FINE = [
    "select 1",
    "(select 1)",
    "SELECT * FROM training_runs",
    "from events select count() group by rollup(fact, stream)",
    "select quantile(0.5)(gpu_seconds), quantilesIf(0.5, 0.9)(gpu_seconds, attempt > 1) from training_attempts",
    "select topK(3)(pool), countIf(attempt > 1), uniqExactIf(run_id, attempt = 1) from training_attempts",
    "select count(distinct run_id), argMax(value, step) filter (where name = 'loss') from metrics",
    "with 1 as one, (select 2) as two, three as (select 3 as n) select one, two, n from three",
    "with a as (select 1 as x), b as (select x from a) select x from b where x in (select x from a)",
    "with training_runs as (select * from training_runs where attempts > 1) select count() from training_runs",
    "select arrayMap(d -> lower(d), dataset_names), produced[1], dataset_digests[-1] from training_attempts",
    "select p from training_attempts array join produced as p",
    "select sum(gpu_seconds) over (partition by run_id order by attempt rows between 1 preceding and current row)"
    " from training_attempts",
    "select row_number() over w from training_attempts window w as (order by attempt)",
    "select a.run_id from training_attempts a asof join metrics m on a.run_id = m.run_id and a.started_at >= m.at",
    "select * from training_runs r left join training_attempts a using (run_id) semi join events e on 1 = 1",
    "select * except (config_json) replace (attempt + 1 as attempt) from training_attempts",
    "select toStartOfInterval(at, interval 5 minute) as t, avg(value) from metrics group by t with totals"
    " order by t with fill step interval 5 minute",
    "select JSONExtractString(config_json, 'optimizer', 'name') from training_attempts",
    "select e.1 from (select arrayJoin(JSONExtractArrayRaw(evidence)) as e from training_attempts)",
    "select case when attempt > 1 then 'x' else 'y' end, cast(attempt as Nullable(String)) from training_attempts",
    "select extract(year from started_at), date_trunc('hour', started_at), interval 1 day from training_attempts",
    "select attempt::Int32, attempt > 1 ? 1 : 2, (1, 2).1, [1, 2][1], 0xff, 1.5e-3, null, true from training_attempts",
    "select 'it''s', 'a\\'b', 'c -- d', 'file(/* \\\\', '„“ü\u00a0$x$ {y} ;' from events",
    "select run_id in (select run_id from training_runs), attempt in (1, 2), (run_id, 1) in (('a', 1)) from events",
    "select run_id not in ('a'), run_id global in (select run_id from events), run_id in training_runs from events",
    "select run_id from training_runs union all (select run_id from events) union distinct select '1' except select 3",
    "select * from events final prewhere run_id = 'x' where sequence > 1 qualify row_number() over (order by at) = 1",
    "select * from training_runs limit 1 by project",
    "select * from training_runs order by cost desc nulls last limit 10 offset 20",
    "select (select max(attempt) from training_attempts) as m, exists(select 1 from events)",
    'select "run_id", `attempt` from `training_attempts` as "a" join "training_runs" using (run_id)',
    "select columns('seconds') from training_attempts",
    "select file, url, system, remote from (select 1 as file, 2 as url, 3 as system, 4 as remote)",
    "select dateDiff('second', started_at, ended_at), dateAdd(day, 1, now()), trim(both ' ' from pool)"
    " from training_attempts",
]


@pytest.mark.parametrize("sql", FINE)
def test_plain_select_passes_unchanged(sql: str) -> None:
    assert guard(sql) == sql


def test_seed_query_passes_unchanged_but_for_its_semicolon() -> None:
    assert guard(SEED_QUERY) == SEED_QUERY.rstrip().rstrip(";")


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("select 1;", "select 1"),
        ("select 1 ; ;\n", "select 1"),
        ("-- mine\nselect 1 -- one", "select 1"),
        ("select/**/1/* and; */+2", "select 1 +2"),
        ("select 1 # two\n+ 1", "select 1  \n+ 1"),
        ("select '-- no comment' /* 'x' */", "select '-- no comment'"),
    ],
)
def test_comments_and_closing_semicolons_are_taken_out(sql: str, left: str) -> None:
    assert guard(sql) == left


@pytest.mark.parametrize(("sql", "said"), REFUSED)
def test_anything_else_is_refused_in_one_clear_sentence(sql: str, said: str) -> None:
    with pytest.raises(CommandRejected) as refusal:
        guard(sql)
    assert said in refusal.value.message
    assert "\n" not in refusal.value.message
    assert [violation.field for violation in refusal.value.violations] == ["sql"]


def test_only_the_given_views_may_be_read() -> None:
    assert guard("select * from mine", {"mine"})
    with pytest.raises(CommandRejected, match="no view events; the views are mine"):
        guard("select * from events", {"mine"})
