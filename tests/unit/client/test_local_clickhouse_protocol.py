"""The HTTP side of the chDB server, without an engine."""

import lz4.frame
import pytest
from trackway.local.clickhouse_server.encoding import SMALL_BYTES, decode, encode, encoding_for
from trackway.local.clickhouse_server.http_request import HttpRequest, Refused, engine_request, wants_compression
from trackway.local.clickhouse_server.statement import Insert, Query, UnreadableStatement, read_statement


def http(*, body=b"", method="POST", headers=None, **parameters):
    return HttpRequest(method=method, parameters=parameters, headers=headers or {}, body=body)


@pytest.mark.parametrize(
    ("body", "head", "data_format", "data"),
    [
        (b"INSERT INTO t FORMAT Native\n\x01\xff", "INSERT INTO t", "Native", b"\x01\xff"),
        (b"insert into `t` (`a`, b) format Native\n\x00", "insert into `t` (`a`, b)", "Native", b"\x00"),
        (b"INSERT INTO t (`FORMAT x`) FORMAT CSV\n1", "INSERT INTO t (`FORMAT x`)", "CSV", b"1"),
        (b"-- why\nINSERT INTO t SETTINGS async_insert=0 FORMAT Native\n", None, "Native", b""),
        (b'/* c */ INSERT INTO t FORMAT JSONEachRow {"a": "FORMAT CSV"}', None, "JSONEachRow", b'{"a": "FORMAT CSV"}'),
        (b"INSERT INTO t FORMAT Native\r\n\n", "INSERT INTO t", "Native", b"\n"),
    ],
)
def test_insert_data_begins_behind_its_format(body, head, data_format, data):
    insert = read_statement(body)
    assert isinstance(insert, Insert)
    assert (insert.format, insert.data) == (data_format, data)
    assert head is None or insert.head == head


@pytest.mark.parametrize(
    "body",
    [
        b"INSERT INTO t VALUES (1, 'FORMAT Native')",
        b"INSERT INTO t SELECT a FROM s FORMAT Null",
        b"INSERT INTO t FORMAT Values (1)",
        b"INSERT INTO t FROM INFILE 'x' FORMAT Native",
        b"INSERT INTO t WITH 1 AS a SELECT a",
    ],
)
def test_insert_without_data_is_left_to_the_engine(body):
    assert read_statement(body) == Query(text=body.decode(), answer_format=None)


@pytest.mark.parametrize(
    ("text", "answer_format"),
    [
        ("SELECT 1", "TabSeparated"),
        ("  -- c\n select 1\n FORMAT Native", "Native"),
        ("(SELECT 1)", "TabSeparated"),
        ("SELECT 1 FORMAT JSON SETTINGS max_threads = 1;", "JSON"),
        ("SELECT 'FORMAT CSV' AS a", "TabSeparated"),
        ("EXISTS TABLE t", "TabSeparated"),
        ("CREATE TABLE t (a Int8) ENGINE = Memory", None),
        ("EXCHANGE TABLES a AND b", None),
        ("DROP TABLE t", None),
    ],
)
def test_only_statements_that_answer_have_a_format(text, answer_format):
    assert read_statement(text.encode()) == Query(text=text, answer_format=answer_format)


def test_statement_that_is_no_text_is_unreadable():
    with pytest.raises(UnreadableStatement, match="byte 7"):
        read_statement(b"SELECT \xff")


def test_settings_and_parameters_reach_the_engine_and_transport_does_not():
    request = engine_request(
        http(
            body=b"SELECT 1",
            session_id="s",
            wait_end_of_query="1",
            client_protocol_version="54405",
            max_threads="1",
            param_x="5",
            database="trackway",
            default_format="JSON",
        )
    )
    assert request.settings == {"max_threads": "1", "param_x": "5"}
    assert (request.database, request.default_format) == ("trackway", "JSON")


def test_data_follows_the_statement_of_the_url():
    request = engine_request(http(body=b"\x01\n\x02", query="INSERT INTO t FORMAT Native"))
    assert request.statement == Insert(head="INSERT INTO t", format="Native", data=b"\x01\n\x02")


def test_get_only_reads():
    assert engine_request(http(method="GET", query="SELECT 1")).settings == {"readonly": "2"}


@pytest.mark.parametrize("parameters", [{"compress": "1"}, {"decompress": "1"}, {"body": b""}, {"body": b"\xff"}])
def test_what_cannot_be_served_is_refused_with_a_code(parameters):
    with pytest.raises(Refused) as refused:
        engine_request(http(**({"body": b"SELECT 1"} | parameters)))
    assert refused.value.code in {48, 62}
    assert f"Code: {refused.value.code}." in refused.value.message


def test_compression_needs_the_setting_and_a_body_worth_it():
    assert wants_compression(http(enable_http_compression="1"))
    assert not wants_compression(http())
    big = b"x" * SMALL_BYTES
    assert encoding_for("br, lz4;q=1, gzip", big) == "lz4"
    assert encoding_for("br", big) is None
    assert encoding_for("lz4", b"x") is None
    assert lz4.frame.decompress(encode(big, "lz4")) == big


def test_request_bodies_are_decoded():
    assert decode(lz4.frame.compress(b"abc"), "lz4") == b"abc"
    assert decode(b"abc", "gzip") == b"abc", "aiohttp has undone it"
    with pytest.raises(ValueError, match="snappy"):
        decode(b"abc", "snappy")
    with pytest.raises(ValueError, match="not lz4"):
        decode(b"abc", "lz4")
