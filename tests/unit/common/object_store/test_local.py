"""What only a real file system can do to the store."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from trackway_common.errors import CommandRejected, CorruptLog, Unavailable
from trackway_common.object_store import BlobStore, LocalObjectStore, StorageFull, folders, open_store


@pytest.fixture
def store(tmp_path):
    return LocalObjectStore(tmp_path / "objects")


def test_symbolic_links_are_never_followed(store, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_bytes(b"secret")
    (store.root / "folder").symlink_to(secret)
    (store.root / "link").symlink_to(secret / "file")
    for call in (
        lambda: store.get("folder/file"),
        lambda: store.get("link"),
        lambda: store.size("link"),
        lambda: list(store.read("link")),
        lambda: store.names("folder"),
        lambda: store.put_if_absent("folder/new", b""),
        lambda: store.move("folder/file", "x"),
    ):
        with pytest.raises(CommandRejected, match="plain"):
            call()
    store.delete("link")
    assert (secret / "file").read_bytes() == b"secret"
    assert list(secret.iterdir()) == [secret / "file"]


def test_deleting_a_folder_leaves_what_links_in_it_point_to(store, tmp_path):
    (tmp_path / "kept").write_bytes(b"kept")
    store.put_if_absent("trash/x/file", b"")
    (store.root / "trash" / "x" / "link").symlink_to(tmp_path / "kept")
    store.delete_below("trash/x")
    assert (tmp_path / "kept").read_bytes() == b"kept"


def test_a_fifo_is_refused_without_waiting(store):
    os.mkfifo(store.root / "pipe")
    with pytest.raises(CommandRejected, match="plain"):
        store.get("pipe")


def test_files_are_read_only(store):
    store.put_if_absent("a", b"x")
    assert (store.root / "a").stat().st_mode & 0o222 == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_so_and_leaves_nothing(store, monkeypatch, number):
    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(folders.os, "posix_fallocate", full)
    with pytest.raises(StorageFull, match="free space"):
        store.put_if_absent("a/b", b"x")
    assert list((store.root / "a").iterdir()) == []


@pytest.mark.parametrize("operation", ["write", "fsync"])
def test_a_failing_disk_leaves_nothing(store, monkeypatch, operation):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(folders.os, operation, broken)
    with pytest.raises(Unavailable, match="Input/output"):
        store.put_if_absent("a/b", b"x")
    assert list((store.root / "a").iterdir()) == []


def test_short_writes_are_gone_on_with(store, monkeypatch):
    write = os.write
    monkeypatch.setattr(folders.os, "write", lambda fd, view: write(fd, view[:3]))
    store.put_if_absent("a", b"0123456789")
    assert store.get("a") == b"0123456789"


def test_a_write_of_nothing_does_not_hang(store, monkeypatch):
    monkeypatch.setattr(folders.os, "write", lambda fd, view: 0)
    with pytest.raises(Unavailable, match="wrote nothing"):
        store.put_if_absent("a", b"0123456789")


def test_what_dead_writers_left_is_swept_after_an_hour(store):
    store.put_if_absent("log/1", b"")
    fresh, stale = store.root / "log/.t-1", store.root / "log/.t-2"
    fresh.touch()
    stale.touch()
    os.utime(stale, (0, 0))
    assert store.names("log") == ["1"]
    store.sweep("log")
    assert fresh.exists()
    assert not stale.exists()


def test_a_damaged_blob_is_found(store):
    blobs = BlobStore(store)
    digest = blobs.put(b"content")
    path = blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(b"c0ntent")
    with pytest.raises(CorruptLog, match="damaged"):
        blobs.get(digest)


def test_a_file_that_changes_while_it_is_stored_is_refused(store, tmp_path, monkeypatch):
    from trackway_common.object_store import blobs as module

    file = tmp_path / "file"
    file.write_bytes(b"before")
    hashed = module._file_sha256

    def hash_then_change(path):
        digest = hashed(path)
        path.write_bytes(b"after!")
        return digest

    monkeypatch.setattr(module, "_file_sha256", hash_then_change)
    with pytest.raises(CommandRejected, match="changed"):
        BlobStore(store).put_file(file)
    assert store.names("blobs/sha256") == []


def test_a_folder_that_was_deleted_and_made_again_is_anchored_again(store, monkeypatch):
    store.put_if_absent("a/1", b"")
    store.delete_below("a")
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(Path(f"/proc/self/fd/{fd}").readlink()), fsync(fd)))
    store.put_if_absent("a/2", b"")
    assert store.root in synced


def test_only_the_local_disk_is_opened(tmp_path):
    assert open_store(f"file://{tmp_path}/a%20b").root == tmp_path / "a b"
    for url in ("s3://bucket/x", "/plain/path", "file://host/path", "file:relative"):
        with pytest.raises(CommandRejected, match="only the local disk"):
            open_store(url)
