"""SDK and actor understand each other, also when one of them is newer, broken or gone."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.rank_protocol.framing import LENGTH, Channel, PeerGone
from trackway_common.rank_protocol.messages import Captured, Hello, Report, Staging, Unknown, decode, encode
from trackway_common.rank_protocol.staging_memory import create_staging, grow_staging, map_staging


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel, socket.socket]]:
    left, right = socket.socketpair()
    ends = Channel(left), Channel(right), left
    yield ends
    ends[0].close()
    ends[1].close()


CAPTURED = Captured(
    step=12,
    nonce="abcd1234",
    size_bytes=4096,
    items=3,
    cursor_seed="18446744073709551615",
    data_epoch=0,
    samples_consumed=64,
    blocked_seconds=0.25,
    metrics={"loss": 0.5},
)


def test_messages_survive_the_wire(pair: tuple[Channel, Channel, socket.socket]) -> None:
    sdk, actor, _ = pair
    messages = [Hello(version=1, pid=7, dumps_stacks=True), CAPTURED, Report(step=1, values={}, at_ms=5)]
    for message in messages:
        sdk.send(message)
    assert [actor.receive() for _ in messages] == [(message, None) for message in messages]


@given(st.dictionaries(st.text(), st.floats(allow_nan=False)))
def test_metrics_keep_their_exact_values(values: dict[str, float]) -> None:
    assert decode(encode(Report(step=3, values=values, at_ms=1))) == Report(step=3, values=values, at_ms=1)


def test_nan_is_a_value_too() -> None:
    message = decode(encode(Report(step=3, values={"loss": math.nan}, at_ms=1)))
    assert isinstance(message, Report)
    assert math.isnan(message.values["loss"])


def test_large_message_arrives_whole(pair: tuple[Channel, Channel, socket.socket]) -> None:
    sdk, actor, _ = pair
    report = Report(step=1, values={f"metric-{number}": float(number) for number in range(50_000)}, at_ms=1)
    sender = threading.Thread(target=sdk.send, args=(report,))
    sender.start()
    assert actor.receive() == (report, None)
    sender.join()


def test_memory_is_shared_through_the_socket(pair: tuple[Channel, Channel, socket.socket]) -> None:
    sdk, actor, _ = pair
    descriptor = create_staging()
    size = grow_staging(descriptor, 5000)
    actor.send(Staging(size_bytes=size), descriptor=descriptor)
    message, received = sdk.receive()
    assert isinstance(message, Staging)
    assert received is not None
    memory = map_staging(received, message.size_bytes)
    memory[:4] = b"word"
    assert os.pread(descriptor, 4, 0) == b"word"
    assert grow_staging(descriptor, 10) == size
    os.close(received)
    os.close(descriptor)


def test_kind_of_a_later_version_is_kept_not_refused() -> None:
    assert decode(b'{"kind": "Later", "x": 1}') == Unknown(kind="Later", body={"x": 1})


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"kind": 3}', b'{"kind": "Report", "nonsense": 1}', b"\xff", b"{"])
def test_bytes_that_are_no_message_are_an_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode(body)


def test_absurd_length_is_refused_unread(pair: tuple[Channel, Channel, socket.socket]) -> None:
    _, actor, raw = pair
    raw.sendall(LENGTH.pack(2**31))
    with pytest.raises(ValueError, match="none of ours"):
        actor.receive()


def test_closed_socket_is_told_apart_from_a_cut_message(pair: tuple[Channel, Channel, socket.socket]) -> None:
    sdk, actor, raw = pair
    raw.sendall(LENGTH.pack(100) + b"half")
    sdk.close()
    with pytest.raises(PeerGone, match="inside a message"):
        actor.receive()
    with pytest.raises(PeerGone, match="closed"):
        actor.receive()
