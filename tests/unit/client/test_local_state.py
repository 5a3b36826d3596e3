"""The state folder: records, status, lock, ports, logs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from trackway.local import ports
from trackway.local.lock import Held, acquire, holder
from trackway.local.logs import last_lines, read_log
from trackway.local.ports import choose_ports, is_free
from trackway.local.processes import end_processes, is_alive, mark_of, stack_processes
from trackway.local.restart import HEALTHY_S, LONGEST_S, Backoff
from trackway.local.state import (
    ProcessMark,
    StackRecord,
    StateFolder,
    default_state_folder,
    read_endpoints,
    read_record,
    write_json,
    write_record,
)
from trackway.local.status import ChildState, StatusBoard, read_status
from trackway_common.errors import CommandRejected, NotFound

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    made = StateFolder(tmp_path / "state")
    made.create()
    return made


def record(folder: StateFolder, **changes: object) -> StackRecord:
    fields = {"stack_id": "s", "folder": str(folder.root), "ports": {"kafka": 1}, "endpoints": {"kafka": "127.0.0.1:1"}}
    return StackRecord(**fields | changes)  # type: ignore[arg-type]


def test_default_folder_comes_from_the_environment() -> None:
    assert default_state_folder({"TRACKWAY_STATE": "/somewhere"}) == Path("/somewhere")
    assert default_state_folder({}).name == "trackway"


def test_record_is_read_back(folder: StateFolder) -> None:
    written = record(folder, supervisor=ProcessMark(pid=1, create_time=2.5))
    write_record(folder, written)
    assert read_record(folder) == written
    assert read_endpoints(folder.root) == {"kafka": "127.0.0.1:1"}
    assert folder.root.stat().st_mode & 0o777 == 0o700


def test_record_in_a_copied_folder_is_not_ours(folder: StateFolder) -> None:
    write_record(folder, replace(record(folder), folder="/the/original"))
    assert read_record(folder) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
def test_file_that_is_no_record_is_none(folder: StateFolder, content: bytes) -> None:
    folder.record.write_bytes(content)
    assert read_record(folder) is None
    assert read_endpoints(folder.root) == {}


def test_interrupted_write_leaves_the_old_file(folder: StateFolder) -> None:
    write_json(folder.record, {"a": 1})
    with pytest.raises(TypeError):
        write_json(folder.record, {"a": object()})
    assert folder.record.read_text() == '{\n  "a": 1\n}'
    assert [path.name for path in folder.root.glob(".*")] == []


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandRejected, match="choose another folder"):
        StateFolder(tmp_path / "file").create()


def test_lock_names_its_holder(folder: StateFolder) -> None:
    assert holder(folder.lock) is None
    with acquire(folder.lock):
        assert holder(folder.lock) == os.getpid()
        with pytest.raises(Held, match=str(os.getpid())):
            acquire(folder.lock)
    assert holder(folder.lock) is None


def test_holder_is_named_even_when_it_is_no_supervisor(folder: StateFolder) -> None:
    folder.lock.write_text("1")
    with subprocess.Popen(["flock", str(folder.lock), "cat"], stdin=subprocess.PIPE) as stranger:
        while holder(folder.lock) is None:
            assert stranger.poll() is None
        assert holder(folder.lock) == stranger.pid
        stranger.communicate()


def test_ports_are_kept_while_they_are_free() -> None:
    chosen = choose_ports(["a", "b"], {})
    assert len(set(chosen.values())) == 2
    assert choose_ports(["a", "b"], chosen) == chosen
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", chosen["a"]))
        taken.listen()
        assert not is_free(chosen["a"])
        moved = choose_ports(["a", "b"], chosen)
    assert moved["a"] != chosen["a"]
    assert moved["b"] == chosen["b"]


def test_two_names_never_share_a_port() -> None:
    free = choose_ports(["x"], {})["x"]
    chosen = choose_ports(["a", "b"], {"a": free, "b": free})
    assert chosen["a"] == free != chosen["b"]


def test_ports_lie_below_the_ephemeral_range(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = tmp_path / "range"
    kernel.write_text("25000\t60999\n")
    monkeypatch.setattr(ports, "EPHEMERAL_RANGE", kernel)
    assert all(20_000 <= port < 25_000 for port in choose_ports(map(str, range(20)), {}).values())


def test_backoff_doubles_and_forgets_after_a_healthy_life() -> None:
    backoff = Backoff()
    assert [backoff.after(0.0) for _ in range(4)] == [0.2, 0.4, 0.8, 1.6]
    assert max(backoff.after(1.0) for _ in range(20)) == LONGEST_S
    assert backoff.after(HEALTHY_S) == 0.2


def test_status_without_a_supervisor_tells_orphans_from_the_dead(folder: StateFolder) -> None:
    board = StatusBoard(folder, now=lambda: NOW)
    for name in ("alive", "dead", "never"):
        board.add(name, f"{name}:1")
    board.change("alive", ChildState.READY, process=mark_of(os.getpid()))
    board.change("dead", ChildState.RESTARTING, detail="killed by SIGKILL")
    board.change("dead", ChildState.READY, process=ProcessMark(pid=os.getpid(), create_time=1.0))
    write_record(folder, record(folder, supervisor=ProcessMark(pid=os.getpid(), create_time=1.0)))
    status = read_status(folder)
    assert not status.running
    assert {child.name: child.state for child in status.children} == {
        "alive": ChildState.ORPHANED,
        "dead": ChildState.STOPPED,
        "never": ChildState.STOPPED,
    }
    assert {child.name: child.restarts for child in status.children} == {"alive": 0, "dead": 1, "never": 0}


def test_status_of_a_running_stack_is_as_written(folder: StateFolder) -> None:
    board = StatusBoard(folder, now=lambda: NOW)
    board.add("kafka", "127.0.0.1:1")
    write_record(folder, record(folder, supervisor=mark_of(os.getpid())))
    assert not read_status(folder).all_ready()
    board.change("kafka", ChildState.READY, process=mark_of(os.getpid()))
    status = read_status(folder)
    assert status.running
    assert status.all_ready()
    assert status.children[0].since == "2026-01-02T00:00:00.000+00:00"


def test_folder_without_a_stack_is_not_ready(folder: StateFolder) -> None:
    assert not read_status(folder).all_ready()


def test_marked_processes_are_found_with_their_descendants_and_ended() -> None:
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '60'], env={}); print(p.pid, flush=True); p.wait()"
    environment = {"TRACKWAY_STACK_ID": "the-stack", "TRACKWAY_STACK_CHILD": "kafka", "PATH": os.environ["PATH"]}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    grandchild = int(parent.stdout.readline())
    assert {process.pid for process in stack_processes("the-stack")} == {parent.pid, grandchild}
    assert stack_processes("the-stack", child="ray") == ()
    assert stack_processes("another") == ()
    session = mark_of(parent.pid)
    assert session is not None
    assert {p.pid for p in stack_processes("another", sessions=[session])} == {parent.pid, grandchild}
    recycled = ProcessMark(pid=session.pid, create_time=session.create_time - 60)
    assert stack_processes("another", sessions=[recycled]) == (), "the pid belongs to somebody else by now"
    end_processes(lambda: stack_processes("the-stack", sessions=[session]), grace_s=0.2)
    parent.wait(5)
    parent.stdout.close()
    assert not psutil.pid_exists(grandchild) or not is_alive(mark_of(grandchild))


def test_log_is_read_from_its_end_and_followed(folder: StateFolder) -> None:
    log = folder.log_of("kafka")
    log.write_text("one\ntwo\nthree\n")
    assert list(read_log(folder, "kafka", lines=2, follow=False)) == ["two", "three"]
    following = read_log(folder, "kafka", lines=1, follow=True)
    assert next(following) == "three"
    with log.open("a") as more:
        more.write("four\nfi")
    assert next(following) == "four"
    log.rename(folder.logs / "kafka.log.1")
    log.write_text("five\n")
    assert next(following) == "five"
    assert last_lines(folder.logs / "nothing.log", 5) == []


def test_unknown_log_names_those_that_are_there(folder: StateFolder) -> None:
    folder.log_of("kafka").write_text("")
    with pytest.raises(NotFound, match="there are: kafka"):
        read_log(folder, "nothing", lines=1, follow=False)
