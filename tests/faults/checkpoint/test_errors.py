"""ENOSPC and EIO at every operation of a save: it fails aloud, nothing half is committed, the next save succeeds."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import pytest
from trackway_common.checkpoint.fsck import fsck
from trackway_common.checkpoint.resume import raise_fence
from trackway_common.errors import Unavailable
from trackway_common.object_store import LocalObjectStore, StorageFull
from trackway_common.testing.checkpoints import CheckpointedRun


def can_mount() -> bool:
    mounting = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(mounting, capture_output=True).returncode == 0


def opened(root) -> CheckpointedRun:
    return CheckpointedRun(LocalObjectStore(root))


def operations_of_a_save(root, watch) -> int:
    names: list[str] = []
    run = opened(root)
    watch(lambda name, *_: names.append(name))
    run.save(2)
    return len(names)


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, StorageFull), (errno.EIO, Unavailable)])
def test_an_error_at_any_operation_abandons_the_save_and_nothing_else(tmp_path, watch, number, kind):
    template = tmp_path / "template"
    run = opened(template)
    raise_fence(run.log(), 1)
    run.save(1)
    shutil.copytree(template, tmp_path / "counted")
    total = operations_of_a_save(tmp_path / "counted", watch)
    for nth in range(1, total + 1):
        root = tmp_path / str(nth)
        shutil.copytree(template, root)
        fail_at(root, nth, number, kind, watch)
        shutil.rmtree(root)


def fail_at(root, nth, number, kind, watch) -> None:
    run, count = opened(root), 0

    def fail(*_) -> None:
        nonlocal count
        count += 1
        if count == nth:
            raise OSError(number, os.strerror(number))

    watch(fail)
    with pytest.raises(kind) as raised:
        run.save(2)
    assert type(raised.value) is kind
    watch(lambda *_: None)
    state = run.log().refresh()
    steps = [commit.commit.step for commit in state.restorable]
    assert steps in ([1], [2, 1]), "2 only when the marker stands and just its durability is unknown"
    run.save(3)
    report = fsck(run.log())
    assert report.problems == ()
    assert report.verified[-1] == run.log().tip().slot


@pytest.mark.root
@pytest.mark.skipif(not can_mount(), reason="mounting a small disk needs root and mount namespaces")
def test_a_disk_that_is_really_full_is_met_before_the_first_byte(tmp_path):
    """A tmpfs of 4 MiB in a mount namespace of its own: nothing outside it sees the mount."""
    script = f"""
import sys
from pathlib import Path
from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.checkpoint.resume import raise_fence
from trackway_common.checkpoint.save import write_rank
from trackway_common.object_store import LocalObjectStore, StorageFull
from trackway_common.testing.checkpoints import CheckpointedRun, shard

run = CheckpointedRun(LocalObjectStore(Path({str(tmp_path)!r}) / "disk"), world_size=1)
raise_fence(run.log(), 1)
run.save(1)
name = CheckpointName(step=2, epoch=1, nonce="abcd")
for reserve in (0, -10**9):  # With the preflight, and past it: the preallocation finds the same.
    try:
        write_rank(run.store, run.rank_save(name, 0), [shard(name, 0, 8 << 20)], reserve_bytes=reserve)
    except StorageFull as error:
        print(error)
run.save(3)
print([commit.commit.step for commit in run.log().refresh().restorable])
"""
    (tmp_path / "disk").mkdir()
    (tmp_path / "script.py").write_text(script)
    mounted = f"mount -t tmpfs -o size=4m tmpfs {tmp_path}/disk && exec {sys.executable} {tmp_path}/script.py"
    done = subprocess.run(["unshare", "-m", "sh", "-c", mounted], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    needs, no_room, steps = done.stdout.splitlines()
    assert "a checkpoint of 8388608 bytes needs" in needs
    assert "no room for" in no_room
    assert steps == "[3, 1]"
