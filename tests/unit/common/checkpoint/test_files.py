"""Data files: hashed while written, checked while read."""

from __future__ import annotations

import blake3
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.checkpoint.files import (
    check_tensor_header,
    checked_chunks,
    pieces,
    preflight,
    read_file,
    read_into,
    write_file,
)
from trackway_common.errors import CommandRejected
from trackway_common.object_store import InMemoryObjectStore, StorageFull

DATA = bytes(range(256)) * 40


@pytest.fixture
def store(disk_run):
    return disk_run.store


def written(store, data=DATA, path="shard/a"):
    return write_file(store, "cp", path, pieces(data, 1000), size_bytes=len(data))


def damage(store, path, data):
    file = store.local_path(f"cp/{path}")
    file.chmod(0o644)
    file.write_bytes(data)


def test_what_is_written_is_described_by_both_hashes(store):
    record = written(store)
    assert record.size_bytes == len(DATA)
    assert record.xxh3_64 == xxhash.xxh3_64(DATA).hexdigest()
    assert record.blake3 == blake3.blake3(DATA).hexdigest()
    assert store.get("cp/shard/a") == DATA


@given(st.binary(max_size=300), st.integers(1, 50))
def test_pieces_are_the_whole(data, size):
    assert b"".join(pieces(bytearray(data), size)) == data
    store = InMemoryObjectStore()
    record = write_file(store, "cp", "shard/a", pieces(data, size), size_bytes=len(data))
    assert read_file(store, "cp", record) == data


def test_a_checked_file_is_read_into_a_buffer(store):
    record = written(store)
    buffer = bytearray(len(DATA))
    read_into(store, "cp", record, memoryview(buffer))
    assert buffer == DATA
    assert read_file(store, "cp", record) == DATA
    assert b"".join(checked_chunks(store, "cp", record)) == DATA


@pytest.mark.parametrize("at", [0, 999, 1000, len(DATA) // 2, len(DATA) - 1])
def test_one_flipped_bit_is_found(store, at):
    record = written(store)
    damaged = bytearray(DATA)
    damaged[at] ^= 1
    damage(store, "shard/a", damaged)
    with pytest.raises(CommandRejected, match="do not hash") as raised:
        read_file(store, "cp", record)
    assert raised.value.reason == "CHECKPOINT_DAMAGED"


@pytest.mark.parametrize("size", [0, 1, len(DATA) - 1, len(DATA) + 1])
def test_another_size_is_found_before_reading(store, size):
    record = written(store)
    damage(store, "shard/a", (DATA + b"x")[:size])
    chunks = checked_chunks(store, "cp", record)
    with pytest.raises(CommandRejected, match=f"has {size} bytes, {len(DATA)} were committed"):
        next(chunks)


def test_a_file_that_grows_while_it_is_read_is_refused(store, monkeypatch):
    record = written(store)
    damage(store, "shard/a", DATA + b"more")
    monkeypatch.setattr(store, "size", lambda key: len(DATA))
    with pytest.raises(CommandRejected, match="grew"):
        read_file(store, "cp", record)


def test_a_symbolic_link_in_place_of_a_file_is_refused(store, tmp_path):
    record = written(store)
    path = store.local_path("cp/shard/a")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CommandRejected, match="plain file"):
        read_file(store, "cp", record)


def test_preflight_wants_headroom_and_reserve(store, monkeypatch):
    monkeypatch.setattr(store, "free_bytes", lambda: 1149)
    with pytest.raises(StorageFull, match="1000 bytes needs 1150 free, 1149 are"):
        preflight(store, 1000, reserve_bytes=100)
    monkeypatch.setattr(store, "free_bytes", lambda: 1150)
    preflight(store, 1000, reserve_bytes=100)
    preflight(InMemoryObjectStore(), 10**15)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        (10**8 + 1).to_bytes(8, "little") + b"{}",
        (3).to_bytes(8, "little") + b"{}",
        (0).to_bytes(8, "little"),
    ],
)
def test_an_impossible_tensor_header_is_refused(store, data):
    record = written(store, data, "shard/x.safetensors")
    with pytest.raises(CommandRejected, match="header"):
        check_tensor_header(store, "cp", record)


def test_a_possible_tensor_header_is_accepted(store):
    check_tensor_header(store, "cp", written(store, (2).to_bytes(8, "little") + b"{}", "shard/x.safetensors"))
