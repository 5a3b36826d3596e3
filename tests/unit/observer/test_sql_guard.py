"""What people may ask in SQL, and what they are told when they may not."""

from __future__ import annotations

import pytest
from trackway_common.errors import CommandRejected
from trackway_observer.history.sql import guard

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


REFUSED = [
    # Other statements.
    ("", "empty"),
    ("  -- nothing\n", "empty"),
    (";", "empty"),
    ("describe training_runs", "begins with describe"),
    ("DESCRIBE file('/etc/passwd')", "begins with DESCRIBE"),
    ("kill query where 1", "begins with kill"),
    ("show tables", "begins with show"),
    ("explain select 1", "begins with explain"),
    ("insert into events_state values (1)", "begins with insert"),
    ("drop table events_state", "begins with drop"),
    ("create table x (a Int8) engine = Memory", "begins with create"),
    ("alter table events_state delete where 1", "begins with alter"),
    ("system shutdown", "begins with system"),
    ("set readonly = 0", "begins with set"),
    ("use system", "begins with use"),
    ("values (1)", "begins with values"),
    ("attach database x", "begins with attach"),
    ("(drop table x)", "begins with drop"),
    ("42", "begins with 42"),
    ("'select'", "begins with 'select'"),
    ("select 1; select 2", "one statement"),
    ("select 1; drop table events_state", "one statement"),
    ("with x as (select 1) insert into y select * from x", "INTO is not allowed"),
    # What comes behind a SELECT.
    ("select 1 into outfile '/tmp/x'", "INTO is not allowed"),
    ("select 1 from events\nInto\tOutfile '/tmp/x' format CSV", "INTO is not allowed"),
    ("select 1 settings max_threads = 1", "SETTINGS is not allowed"),
    ("select 1 format JSON", "FORMAT is not allowed"),
    ("(select 1 settings readonly = 0)", "SETTINGS is not allowed"),
    ("select * from (select 1 settings readonly = 0)", "SETTINGS is not allowed"),
    ("with recursive t as (select 1 union all select * from t) select * from t", "RECURSIVE is not allowed"),
    # Functions that reach outside.
    ("select file('/etc/passwd')", "function file is not allowed"),
    ("select FILE('/etc/passwd')", "function FILE is not allowed"),
    ("select file /* x */ ('/etc/passwd')", "function file is not allowed"),
    ("select file\n--\n('/etc/passwd')", "function file is not allowed"),
    ("select \"file\"('/etc/passwd')", "can't be called"),
    ("select `file`('/etc/passwd')", "can't be called"),
    ("select lower(file('/etc/passwd'))", "function file is not allowed"),
    ("select arrayMap(x -> file(x), ['/etc/passwd'])", "function file is not allowed"),
    ("select arrayMap(file -> file('/etc/passwd'), [1])", "function file is not allowed"),
    ("select * apply(file) from events", "APPLY is not allowed"),
    ("select columns('x') apply file from events", "APPLY is not allowed"),
    ("with file as f select f('/etc/passwd')", "function f is not allowed"),
    ("select arrayReduce('sum', [1])", "function arrayReduce is not allowed"),
    ("select dictGet('d', 'a', 1)", "function dictGet is not allowed"),
    ("select joinGet('j', 'a', 1)", "function joinGet is not allowed"),
    ("select getSetting('readonly')", "function getSetting is not allowed"),
    ("select sleep(3)", "function sleep is not allowed"),
    ("select sleepEachRow(3) from events", "function sleepEachRow is not allowed"),
    ("select hostName(), currentUser()", "function hostName is not allowed"),
    ("select throwIf(1)", "function throwIf is not allowed"),
    ("select filesystemAvailable()", "function filesystemAvailable is not allowed"),
    ("select hasColumnInTable('system', 'users', 'name')", "function hasColumnInTable is not allowed"),
    ("select initializeAggregation('sum', 1)", "function initializeAggregation is not allowed"),
    ("select aiGenerate('m', 'hello')", "function aiGenerate is not allowed"),
    ("select in(1, system.users)", "names a database"),
    ("select notIn(1, system.users)", "function notIn is not allowed"),
    ("select globalIn(1, system.users)", "function globalIn is not allowed"),
    ("select sumState(1)", "function sumState is not allowed"),
    ("select coumt(*) from events", "did you mean count?"),
    ("select toStartOfHuor(at) from events", "did you mean toStartOfHour?"),
    # Table functions.
    ("select * from file('/etc/passwd', 'LineAsString')", "function file is not allowed"),
    ("select * from url('http://x/', CSV)", "function url is not allowed"),
    ("select * from executable('x.sh', CSV, 'a Int8')", "function executable is not allowed"),
    ("select * from remote('h', system.users)", "function remote is not allowed"),
    ("select * from s3('x')", "function s3 is not allowed"),
    ("select * from mysql('h', 'd', 't', 'u', 'p')", "function mysql is not allowed"),
    ("select * from merge('trackway', '.*')", "function merge is not allowed"),
    ("select * from cluster('c', system.one)", "function cluster is not allowed"),
    ("select * from numbers(10)", "function numbers is not allowed"),
    ("select * from view(select 1)", "function view is not allowed"),
    ("select * from viewExplain('a', 'b', (select 1))", "function viewExplain is not allowed"),
    ("select * from dictionary('d')", "function dictionary is not allowed"),
    ("select * from values('a Int8', 1)", "function values is not allowed"),
    ("select * from null('a Int8')", "not allowed"),
    ("select * from training_runs, file('x')", "function file is not allowed"),
    ("select * from training_runs join url('x') on 1", "function url is not allowed"),
    ("select 1 in numbers(10)", "function numbers is not allowed"),
    ("select * from array(1)", "not allowed after FROM"),
    ("select * from map(1, 2)", "not allowed after FROM"),
    ("select * from arrayJoin([1, 2])", "not allowed after FROM"),
    ("select * from (explain select 1)", "EXPLAIN can't begin a bracket"),
    ("select * from (show tables)", "SHOW can't begin a bracket"),
    ("with show as (select 1) select * from (show tables)", "SHOW can't begin a bracket"),
    ("with describe as (select 1) select * from (describe events)", "DESCRIBE can't begin a bracket"),
    # Tables that are no views.
    ("select * from system.users", "names a database"),
    ("select * from private.users", "names a database"),
    ("select * from `private`.users", "names a database"),
    ("select * from system . users", "names a database"),
    ("select * from `system`.`users`", "names a database"),
    ('select * from "system"."users"', "names a database"),
    ("select * from trackway.training_runs", "names a database"),
    ("select * from INFORMATION_SCHEMA.TABLES", "names a database"),
    ("select * from a.b.c", "names a database"),
    ("select * from events_state", "no view events_state"),
    ("select * from `system.users`", "no view system.users"),
    ("select * from training_run", "did you mean training_runs?"),
    ("select * from TRAINING_RUNS", "did you mean training_runs?"),
    ("select * from atempts", "no view atempts"),
    ("select * from nothing_like_it", "the views are agents, budget_ledger"),
    ("select * from schema_migrations", "no view"),
    ("select * from (select * from system.users)", "names a database"),
    ("select (select count() from system.users)", "names a database"),
    ("select 1 where exists (select 1 from system.users)", "names a database"),
    ("select 1 from events where run_id in (select name from system.users)", "names a database"),
    ("select * from events join system.users on 1", "names a database"),
    ("select * from events, system.users", "names a database"),
    ("select 1 union all select name from system.users", "names a database"),
    ("with x as (select * from system.users) select * from x", "names a database"),
    ("with training_runs as (select * from system.users) select * from training_runs", "names a database"),
    ("with (select count() from system.users) as n select n", "names a database"),
    ("select 1 in system.users", "names a database"),
    ("select 1 not in system.users", "names a database"),
    ("select 1 global in system.users", "names a database"),
    ("select 1 in (system.users)", "SYSTEM can't begin a bracket"),
    ("select 1 in ((system.users))", "SYSTEM can't begin a bracket"),
    ("select 1 in events_state", "no view events_state"),
    ("select 1 in (events_state)", "no view events_state"),
    ("select 1 in private.users", "for a table's name"),
    ("select 1 not in private.users", "for a table's name"),
    ("select 1 global in private.users", "for a table's name"),
    ("select 1 in (private.users)", "for a table's name"),
    ("select 1 in ((private.users))", "for a table's name"),
    ("select in(1, private.users)", "no SQL that can be read"),
    ("select 1 in a.b.c", "for a table's name"),
    # WITH names that are not in reach where they are used.
    ("with events_state as (select * from events_state) select 1", "no view events_state"),
    ("with a as (select * from b), b as (select 1) select * from a", "no view b"),
    ("with 1 as events_state select * from events_state", "no view events_state"),
    ("with (select 1) as events_state select * from events_state", "no view events_state"),
    ("select * from (with b as (select 1) select * from b) join b on 1", "no view b"),
    ("select 1 as events_state, 2 in events_state", "no view events_state"),
    # Clauses nobody needs.
    ("select * from events sample 0.1", "TABLESAMPLE is not allowed"),
    ("select {x:UInt8}", "write the value itself"),
    ("select {x:Identifier} from events", "write the value itself"),
    ("select * from {t:Identifier}", "write the value itself"),
    ("select * from events pivot (count() for fact in ('a'))", "function pivot is not allowed"),
    ("select @@version", "may only stand inside"),
    ("select ?", "not allowed"),
    # What two lexers can read differently.
    ("select /* /* */ file('/etc/passwd') -- */ */", "function file is not allowed"),
    ("select 1 /* never closed", "never closed"),
    ("select 'never closed", "never closed"),
    ("select 'a''", "never closed"),
    ('select "a', "never closed"),
    ('select "a\\"b"', "holds a quote"),
    ('select "a""b"', "holds a quote"),
    ('select ""', "is empty"),
    ("select $$x$$", "may only stand inside"),
    ("select $a$ ' $a$, file('x') --'", "may only stand inside"),
    ("select ‘x’", "may only stand inside"),
    ("select “file”('x')", "may only stand inside"),
    ("select 1\u00a0+ 1", "may only stand inside"),
    ("select 1\u2028-- x", "may only stand inside"),
    ("select 1\x00, file('x')", "may only stand inside"),
    ("select N'x'", "put a blank between"),
    ("select x'41'", "put a blank between"),
    ("select 'a'\"b\"'c'", "put a blank between"),
    ("select 1 \\G", "backslash"),
    ("select #1", "comments begin with --"),
    ("select 1 #!file\n, 2 #x", "comments begin with --"),
    ("select (1", "never closed"),
    ("select 1)", "closes nothing"),
    ("select [1)", "closes nothing"),
    # Size.
    ("select " + "(" * 60 + "1" + ")" * 60, "nested more than"),
    ("select " + "not " * 10_000 + "1", "nested too deeply"),
    ("select '" + "x" * 70_000 + "'", "at most 65,536"),
    # Plain mistakes.
    ("select from where", "no SQL that can be read"),
    ("select 1 from events wehre run_id = 'x'", "no SQL that can be read"),
]


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
