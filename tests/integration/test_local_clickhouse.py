"""clickhouse-connect, unchanged, against chDB behind ClickHouse's HTTP protocol."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

START_S = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "trackway.local.clickhouse_server", "--path", str(path), "--port", str(port)]
    process = subprocess.Popen(argv, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        until_it_answers(port, process)
        yield process
    finally:
        process.terminate()
        assert process.wait(15) in {0, -signal.SIGKILL}


def until_it_answers(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=1) as answer:
                assert answer.read() == b"Ok.\n"
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    pytest.fail(f"the server did not answer (exit {process.poll()})")


def connect(port: int, **arguments: object) -> Client:
    # Urllib3's pool lives as long as the client; one of its own keeps tests apart.
    return clickhouse_connect.get_client(host="127.0.0.1", port=port, username="any", password="thing", **arguments)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    chosen = free_port()
    with server(tmp_path_factory.mktemp("chdb"), chosen):
        yield chosen


@pytest.fixture
def client(port: int) -> Iterator[Client]:
    with connect(port) as made:
        made.command("DROP DATABASE IF EXISTS t")
        made.command("CREATE DATABASE t")
        yield made


def test_columnar_insert_and_parameters(client: Client) -> None:
    assert client.ping()
    client.command(
        "CREATE TABLE t.a (id UInt64, at DateTime64(3, 'UTC'), tags Map(String, String), note Nullable(String)) "
        "ENGINE = MergeTree ORDER BY id"
    )
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    columns = [[1, 2], [at, at], [{"a": "b"}, {}], ["o'clock\tÿ\\", None]]
    summary = client.insert("a", columns, database="t", column_names=["id", "at", "tags", "note"], column_oriented=True)
    assert summary.written_rows == 2
    found = client.query(
        "SELECT id, at, tags, note FROM t.a WHERE note = {note:String} AND at >= {at:DateTime64(3)}",
        parameters={"note": "o'clock\tÿ\\", "at": at},
    )
    assert found.column_names == ("id", "at", "tags", "note")
    assert [row[0] for row in found.result_rows] == [1]
    assert found.result_rows[0][2:] == ({"a": "b"}, "o'clock\tÿ\\")
    assert client.query("SELECT note FROM t.a WHERE id = 2").result_rows == [(None,)]


def test_database_of_the_client_is_used(client: Client, port: int) -> None:
    client.command("CREATE TABLE t.a (id UInt64) ENGINE = MergeTree ORDER BY id")
    with connect(port, database="t") as inside:
        inside.insert("a", [[7]], column_names=["id"])
        assert inside.command("SELECT max(id) FROM a") == 7
        assert inside.command("EXISTS TABLE a") == 1


def test_repeated_token_inserts_once_also_behind_a_materialized_view(client: Client) -> None:
    window = "SETTINGS non_replicated_deduplication_window = 1000"
    client.command(f"CREATE TABLE t.a (id UInt64) ENGINE = MergeTree ORDER BY id {window}")
    client.command(f"CREATE TABLE t.n (n UInt64) ENGINE = MergeTree ORDER BY n {window}")
    client.command("CREATE MATERIALIZED VIEW t.v TO t.n AS SELECT count() AS n FROM t.a")
    for token in ("p:1:a:0-9", "p:1:a:0-9", "p:1:a:10-19"):
        settings = {"insert_deduplication_token": token, "deduplicate_blocks_in_dependent_materialized_views": 1}
        client.insert("a", [[n] for n in range(10)], database="t", column_names=["id"], settings=settings)
    assert client.query("SELECT count(), (SELECT sum(n) FROM t.n) FROM t.a").result_rows == [(20, 20)]


def test_replacing_merge_tree_is_read_with_final_and_tables_are_exchanged(client: Client) -> None:
    for name in ("live", "next"):
        client.command(
            f"CREATE TABLE t.{name} (id UInt64, state String, version UInt64) "
            "ENGINE = ReplacingMergeTree(version) ORDER BY id"
        )
    names = ["id", "state", "version"]
    client.insert("live", [[1, "QUEUED", 1]], database="t", column_names=names)
    client.insert("live", [[1, "RUNNING", 2]], database="t", column_names=names)
    assert client.query("SELECT state FROM t.live FINAL").result_rows == [("RUNNING",)]
    client.insert("next", [[1, "SUCCEEDED", 3]], database="t", column_names=names)
    client.command("EXCHANGE TABLES t.live AND t.next")
    assert client.query("SELECT state FROM t.live FINAL").result_rows == [("SUCCEEDED",)]


def test_errors_carry_clickhouse_codes(client: Client) -> None:
    for sql, code in (("SELECT * FROM t.nada", 60), ("SELEC 1", 62), ("SELECT {x:UInt8}", 456), ("USE nada", 81)):
        with pytest.raises(DatabaseError) as failed:
            client.command(sql)
        assert failed.value.code == code, sql
    with pytest.raises(DatabaseError, match="READONLY"):
        client.command("CREATE TABLE t.a (id UInt8) ENGINE = Memory", settings={"readonly": 2})
    with pytest.raises(DatabaseError, match="TIMEOUT_EXCEEDED"):
        client.query("SELECT sum(sipHash64(number)) FROM numbers(100000000000)", settings={"max_execution_time": 1})


def test_settings_do_not_outlive_their_request(client: Client) -> None:
    sql = "SELECT getSetting('max_block_size')"
    assert client.command(sql, settings={"max_block_size": 77}) == 77
    assert client.command(sql) != 77


@pytest.mark.parametrize("encoding", ["lz4", "gzip", "zstd"])
def test_compression_both_ways(client: Client, port: int, encoding: str) -> None:
    client.command("CREATE TABLE t.a (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
    rows = [[n, "x" * 20] for n in range(5000)]
    with connect(port, compress=encoding) as compressing:
        compressing.insert("a", rows, database="t", column_names=["id", "s"])
        assert compressing.query("SELECT * FROM t.a ORDER BY id").result_rows == [tuple(row) for row in rows]


def test_slow_query_does_not_hold_up_others(port: int) -> None:
    def run_long() -> None:
        with connect(port) as other:
            other.query(
                "SELECT sum(sipHash64(number)) FROM numbers(100000000000)",
                settings={"max_execution_time": 2, "timeout_overflow_mode": "break", "max_threads": 1},
            )

    slow = threading.Thread(target=run_long)
    slow.start()
    with connect(port) as quick:
        while not quick.command("SELECT count() FROM system.processes WHERE query LIKE '%sipHash%' AND elapsed > 0.1"):
            pass
        assert quick.command("SELECT 1") == 1
        assert slow.is_alive(), "answered while the other was still running"
    slow.join()


def test_browsers_are_refused(port: int) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example:80"}):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/?query=SELECT%201", headers=headers)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request, timeout=5)


def test_get_reads_and_never_writes(port: int) -> None:
    base = f"http://127.0.0.1:{port}/?query="
    with urllib.request.urlopen(base + "SELECT%201%2B1", timeout=5) as answer:
        assert answer.read() == b"2\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(base + "CREATE%20DATABASE%20x", timeout=5)
    assert refused.value.headers["X-ClickHouse-Exception-Code"] == "164"


def test_rows_survive_kill_9(tmp_path: Path) -> None:
    port = free_port()
    with server(tmp_path, port) as process:
        with connect(port) as client:
            client.command("CREATE TABLE a (id UInt64) ENGINE = MergeTree ORDER BY id")
            for n in range(20):
                client.insert("a", [[n]], column_names=["id"])
        process.kill()
        process.wait(10)
    with server(tmp_path, port), connect(port) as client:
        assert client.query("SELECT count(), sum(id) FROM a").result_rows == [(20, 190)]
