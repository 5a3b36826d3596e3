"""SIGKILL ahead of every operation on the disk, from the fence to the last byte freed."""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from trackway_common.checkpoint.collect import collect
from trackway_common.checkpoint.fsck import fsck
from trackway_common.checkpoint.layout import data_prefix, trash_prefix
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.checkpoint.retention import KeepLast
from trackway_common.object_store import LocalObjectStore
from trackway_common.testing.checkpoints import CheckpointedRun

KEEP_2 = KeepLast(count=2)


def prepared(root) -> CheckpointedRun:
    run = CheckpointedRun(LocalObjectStore(root))
    raise_fence(run.log(), 1)
    for step in (1, 2, 3):
        run.save(step)
    return run


def attempt(root, epoch, acknowledge) -> None:
    """What one attempt does, telling what it was told."""
    run = CheckpointedRun(LocalObjectStore(root))
    log = run.log(f"epoch {epoch}")
    target = choose_resume_target(log, raise_fence(log, epoch))
    acknowledge(f"fence {epoch}\n")
    step = target.checkpoint.step + 1
    entry = run.save(step, epoch)
    acknowledge(f"commit {entry.slot} {step}\n")
    for slot in collect(run.log(), KEEP_2, grace_ms=0).deleted:
        acknowledge(f"deleted {slot}\n")


def in_child(work) -> tuple[int, str]:
    """Run in a forked process; return its wait status and what it acknowledged."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            work(lambda text: os.write(write, text.encode()))
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read().decode()
    return os.waitpid(pid, 0)[1], told


def check(root, told: str) -> None:
    """No reader sees half of anything, and what was acknowledged is there."""
    run = CheckpointedRun(LocalObjectStore(root))
    report = fsck(run.log())
    assert report.problems == ()
    state = run.log().refresh()
    assert set(report.verified) == {commit.slot for commit in state.restorable}
    assert len(state.restorable) >= 2
    for line in told.splitlines():
        match line.split():
            case ["fence", epoch]:
                assert state.head.fence >= int(epoch)
            case ["commit", slot, step]:
                assert state.commits[int(slot)].commit.step == int(step)
            case ["deleted", slot]:
                assert state.commits[int(slot)].deleted is not None


def operations_of_an_attempt(tmp_path, watch) -> int:
    count = 0

    def counted(*_) -> None:
        nonlocal count
        count += 1

    shutil.copytree(tmp_path / "template", tmp_path / "counted")
    watch(counted)
    attempt(tmp_path / "counted", 2, lambda text: None)
    return count


def test_a_kill_at_any_operation_leaves_the_old_or_the_new_state(tmp_path, watch):
    prepared(tmp_path / "template")
    total = operations_of_an_attempt(tmp_path, watch)
    assert total > 100
    seen: set[tuple[int, ...]] = set()
    for nth in range(1, total + 1):
        root = tmp_path / str(nth)
        shutil.copytree(tmp_path / "template", root)
        with_kill_at(root, nth, watch, seen)
        shutil.rmtree(root)
    assert len(seen) > 2, "kills hit before, between and after what counts"


def with_kill_at(root, nth, watch, seen) -> None:
    count = 0

    def kill(*_) -> None:
        nonlocal count
        count += 1
        if count == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    watch(kill)
    status, told = in_child(lambda acknowledge: attempt(root, 2, acknowledge))
    assert os.WIFSIGNALED(status), f"operation {nth} was not reached"
    count = -(10**9)
    check(root, told)
    run = CheckpointedRun(LocalObjectStore(root))
    seen.add(tuple(commit.commit.step for commit in run.log().refresh().restorable))
    told_next = ""
    if nth % 4 == 0:  # The next attempt recovers, and is itself killed on the way; the one after it ends well.
        count = nth // 2
        _, told_next = in_child(lambda acknowledge: attempt(root, 3, acknowledge))
        count = -(10**9)
        check(root, told + told_next)
    told_last: list[str] = []
    attempt(root, 4, told_last.append)
    check(root, told + told_next + "".join(told_last))
    names = {name.rstrip("/") for name in run.store.names(data_prefix(run.run_id))}
    restorable = {commit.commit.path.removeprefix("data/") for commit in run.log().refresh().restorable}
    assert names == restorable, "nothing leaks beyond one collection"
    assert run.store.names(trash_prefix(run.run_id)) == []


def test_a_zombie_that_wakes_up_before_its_marker_is_fenced(tmp_path, watch):
    """SIGSTOP just ahead of the marker's link; the next attempt commits; SIGCONT."""
    root = tmp_path / "objects"
    run = prepared(root)
    zombie, links = run.log("zombie"), 0

    def stop_before_the_marker(name, args, kwargs) -> None:
        nonlocal links
        if name == "link" and str(args[1]).startswith("0000"):
            links += 1
            if links == 1:
                os.kill(os.getpid(), signal.SIGSTOP)

    def commit_as_zombie() -> None:
        from trackway_common.errors import Fenced

        try:
            run.save(4, epoch=1)
        except Fenced:
            os._exit(42)
        os._exit(0)

    zombie.refresh()
    watch(stop_before_the_marker)
    pid = os.fork()
    if pid == 0:
        commit_as_zombie()
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    links = 10
    next_run = CheckpointedRun(LocalObjectStore(root))
    log = next_run.log("next")
    assert choose_resume_target(log, raise_fence(log, 2)).checkpoint.step == 3
    next_run.save(4, epoch=2)
    os.kill(pid, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
    state = next_run.log().refresh()
    assert [(commit.commit.step, commit.commit.epoch) for commit in state.restorable][:2] == [(4, 2), (3, 1)]
    assert len(fsck(next_run.log()).writing) == 1, "the zombie's bytes are there and do not exist"
    collect(next_run.log(), KeepLast(count=9))
    assert fsck(next_run.log()).writing == ()


@pytest.mark.parametrize("processes", [16])
def test_processes_race_for_slots_and_every_slot_has_one_entry(tmp_path, processes):
    root = tmp_path / "objects"
    run = CheckpointedRun(LocalObjectStore(root), world_size=1)
    raise_fence(run.log(), 1)
    gate_read, gate_write = os.pipe()
    pids = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(gate_write)
                os.read(gate_read, 1)
                run.save(number)
                run.save(100 + number)
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(gate_read)
    os.close(gate_write)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * processes
    state = run.log().refresh()
    assert run.log().slots() == list(range(1, 2 * processes + 2))
    assert sorted(commit.commit.step for commit in state.commits.values()) == sorted(
        [*range(processes), *range(100, 100 + processes)]
    )
    assert fsck(run.log()).problems == ()
