"""What every object store keeps: the local disk and the one in memory."""

from __future__ import annotations

import threading

import pytest
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.object_store import (
    AlreadyExists,
    BlobStore,
    InMemoryObjectStore,
    LocalObjectStore,
    refuse_without_conditional_create,
)


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return LocalObjectStore(tmp_path / "objects") if request.param == "local" else InMemoryObjectStore()


def test_a_created_object_is_read_back(store):
    store.put_if_absent("a/b/c", b"bytes")
    assert store.get("a/b/c") == b"bytes"
    assert store.size("a/b/c") == 5
    assert b"".join(store.read("a/b/c", chunk_bytes=2)) == b"bytes"


def test_a_second_create_changes_nothing(store):
    store.put_if_absent("a/b", b"first")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a/b", b"second")
    with pytest.raises(AlreadyExists):
        store.create("a/b", (b"third",), size_bytes=5)
    assert store.get("a/b") == b"first"
    assert store.names("a") == ["b"]


def test_of_many_creators_of_one_key_exactly_one_wins(store):
    won: list[int] = []
    start = threading.Barrier(16)

    def create(number: int) -> None:
        start.wait()
        try:
            store.put_if_absent("slot/1", str(number).encode())
        except AlreadyExists:
            return
        won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.get("slot/1") == str(won[0]).encode()
    assert store.names("slot") == ["1"]


def test_an_object_of_another_size_than_announced_is_not_created(store):
    for chunks in ((b"abc", b"d"), (b"ab",)):
        with pytest.raises(CommandRejected, match="announced"):
            store.create("a/b", chunks, size_bytes=3)
    assert store.names("a") == []


def test_a_source_that_fails_half_way_leaves_nothing(store):
    def chunks():
        yield b"abc"
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match="broke"):
        store.create("a/b", chunks(), size_bytes=6)
    assert store.names("a") == []
    store.put_if_absent("a/b", b"whole")


def test_an_empty_object_is_an_object(store):
    store.put_if_absent("a/empty", b"")
    assert store.get("a/empty") == b""
    assert list(store.read("a/empty")) == []


def test_put_replaces(store):
    store.put("hint", b"1")
    store.put("hint", b"22")
    assert store.get("hint") == b"22"


def test_names_are_sorted_and_start_after(store):
    for key in ("p/2", "p/10", "p/1", "p/sub/x", "q/1"):
        store.put_if_absent(key, b"")
    assert store.names("p") == ["1", "10", "2", "sub/"]
    assert store.names("p", start_after="10") == ["2", "sub/"]
    assert store.names("nothing/here") == []


def test_what_is_missing_is_said_by_name(store):
    for call in (store.get, store.size, lambda key: list(store.read(key)), store.settle):
        with pytest.raises(NotFound, match="a/missing"):
            call("a/missing")
    store.delete("a/missing")
    store.delete_below("a")
    store.sweep("a")


def test_a_large_object_is_refused_unread(store):
    store.put_if_absent("a/b", b"x" * 100)
    assert store.get("a/b", limit_bytes=100) == b"x" * 100
    with pytest.raises(CommandRejected, match="100 bytes"):
        store.get("a/b", limit_bytes=99)


def test_a_prefix_moves_whole_and_is_deleted_whole(store):
    store.put_if_absent("run/data/s1/shard/a", b"1")
    store.put_if_absent("run/data/s1/manifest", b"2")
    store.move("run/data/s1", "run/trash/s1")
    assert store.names("run/data") == []
    assert store.get("run/trash/s1/shard/a") == b"1"
    store.delete_below("run/trash/s1")
    assert store.names("run/trash") == []
    with pytest.raises(NotFound):
        store.move("run/data/s1", "run/trash/s1")


@pytest.mark.parametrize(
    "key", ["../x", "/etc/passwd", "a//b", "a/./b", "a/../../b", "", "a\x00b", ".t-1", "a\\b", "x" * 256]
)
def test_keys_that_leave_the_root_are_refused(store, key):
    for call in (store.get, store.names, store.delete, store.local_path, lambda key: store.put_if_absent(key, b"")):
        with pytest.raises(CommandRejected):
            call(key)


def test_durability_calls_accept_what_exists(store):
    store.create("a/b/c", (b"x", memoryview(b"yz")), size_bytes=3)
    store.settle("a/b")
    store.anchor("a/b")
    assert store.get("a/b/c") == b"xyz"


def test_the_probe_accepts_it(store):
    refuse_without_conditional_create(store)
    assert store.names("probe") == []


def test_the_probe_refuses_a_store_that_overwrites():
    class Overwriting(InMemoryObjectStore):
        def put_if_absent(self, key, data):
            self.put(key, data)

    with pytest.raises(CommandRejected, match="overwrites"):
        refuse_without_conditional_create(Overwriting())


def test_blobs_are_found_by_digest(store, tmp_path):
    blobs = BlobStore(store)
    digest = blobs.put(b"content")
    assert digest == blobs.put(b"content")
    assert blobs.get(digest) == b"content"
    assert store.names("blobs/sha256") == [digest.removeprefix("sha256:")]
    file = tmp_path / "file"
    file.write_bytes(b"content")
    assert blobs.put_file(file) == digest
    file.write_bytes(b"z" * (9 << 20))
    assert len(blobs.get(blobs.put_file(file))) == 9 << 20


def test_a_blob_that_does_not_exist_is_not_found(store):
    blobs = BlobStore(store)
    missing = "sha256:" + "0" * 64
    assert not blobs.has(missing)
    with pytest.raises(NotFound):
        blobs.get(missing)
    for bad in ("sha256:../../x", "md5:1", "0" * 64):
        with pytest.raises(CommandRejected, match="digest"):
            blobs.get(bad)
