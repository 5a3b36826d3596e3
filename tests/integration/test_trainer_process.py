"""The launcher relays the exact end, and nothing that a trainer started outlives it or its actor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from trackway_trainer_agent.worker.trainer_process import ExecutionFailed, ProcessEnd, TrainerProcess

from tests.support.ranks import actor_of, launcher_of

MARK = "TRACKWAY_TEST_MARK"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Sequence[str]], TrainerProcess]]:
    processes: list[TrainerProcess] = []

    def run(argv: Sequence[str]) -> TrainerProcess:
        process = TrainerProcess(argv, folder=tmp_path, environment={**os.environ, MARK: str(tmp_path)})
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.close()
    assert eventually(lambda: not alive(tmp_path)), "the test left processes behind"


def alive(mark: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(mark) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def eventually(condition: Callable[[], bool], limit_s: float = 60.0) -> bool:
    deadline_s = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return condition()


def read_until(descriptor: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        data = os.read(descriptor, 4096)
        assert data, f"output ended with {seen!r}"
        seen += data
    return seen


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_exit_code_is_relayed(start: Callable[..., TrainerProcess], code: int) -> None:
    end = start(("sh", "-c", f"exit {code}")).wait()
    assert (end.exit_code, end.signal) == (code, None)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM"])
def test_signal_is_relayed_by_name(start: Callable[..., TrainerProcess], name: str) -> None:
    end = start(("sh", "-c", f"kill -{name[3:]} $$")).wait()
    assert (end.exit_code, end.signal) == (None, name)


def test_exit_code_above_128_is_no_signal(start: Callable[..., TrainerProcess]) -> None:
    assert start(("sh", "-c", "exit 137")).wait().exit_code == 137


def test_peak_memory_is_measured(start: Callable[..., TrainerProcess]) -> None:
    end = start(python("b = bytearray(64 << 20); b[::4096] = b'x' * len(b[::4096])")).wait()
    assert end.peak_memory_bytes > 64 << 20


@pytest.mark.parametrize(
    ("argv", "error"), [(("/nowhere/program",), "No such file"), (("/etc/passwd",), "Permission denied")]
)
def test_program_that_cannot_be_executed_says_why(
    start: Callable[..., TrainerProcess], argv: tuple[str, ...], error: str
) -> None:
    with pytest.raises(ExecutionFailed, match=error):
        start(argv)


def test_grandchildren_of_a_shell_die_with_the_trainer(start: Callable[..., TrainerProcess], tmp_path: Path) -> None:
    process = start(("sh", "-c", "(setsid sleep 600 &) ; (nohup sleep 600 &) ; echo up; exit 4"))
    assert process.wait().exit_code == 4
    assert not alive(tmp_path)


def test_kill_reaches_processes_that_left_the_session(start: Callable[..., TrainerProcess], tmp_path: Path) -> None:
    process = start(("sh", "-c", "setsid sh -c 'sleep 600 & sleep 600' & echo up; sleep 600"))
    stdout, _ = process.take_output()
    read_until(stdout, b"up")
    assert eventually(lambda: len(alive(tmp_path)) >= 5)
    process.kill()
    assert process.wait().signal == "SIGKILL"
    assert not alive(tmp_path)


def test_terminate_reaches_the_process_group(start: Callable[..., TrainerProcess]) -> None:
    process = start(("sh", "-c", "trap 'echo bye; exit 9' TERM; sleep 600 & echo up; wait"))
    stdout, _ = process.take_output()
    read_until(stdout, b"up")
    process.terminate()
    read_until(stdout, b"bye")
    assert process.wait().exit_code == 9


def test_trainer_begins_with_default_signals_and_no_descriptor_of_ours(start: Callable[..., TrainerProcess]) -> None:
    code = (
        "import os, signal\n"
        "print([signal.getsignal(s).name for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)],"
        " sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:5], signal.pthread_sigmask(0, []), flush=True)"
    )
    process = start(python(code))
    stdout, _ = process.take_output()
    assert read_until(stdout, b"\n") == b"['SIG_DFL', 'SIG_DFL', 'SIG_DFL'] [0, 1, 2, 3] set()\n"
    process.wait()


def test_killed_launcher_takes_the_trainer_along_and_the_end_is_unknown(
    start: Callable[..., TrainerProcess], tmp_path: Path
) -> None:
    process = start(("sh", "-c", "sleep 600 & setsid sleep 600 & wait"))
    assert eventually(lambda: len(alive(tmp_path)) == 4)
    os.kill(launcher_of(process.pid), signal.SIGKILL)
    assert process.wait() == ProcessEnd(exit_code=None, signal=None, peak_memory_bytes=0)
    assert eventually(lambda: not alive(tmp_path))


def test_the_launcher_is_no_child_of_the_actor_for_ray_kills_those(start: Callable[..., TrainerProcess]) -> None:
    before = psutil.Process().children()
    process = start(("sleep", "600"))
    assert psutil.Process().children() == before
    assert actor_of(process.pid) == os.getpid()


def test_orders_after_the_end_do_nothing(start: Callable[..., TrainerProcess]) -> None:
    process = start(("true",))
    process.wait()
    process.kill()
    process.terminate()
    process.close()
    process.kill()


def test_nothing_outlives_a_killed_actor(tmp_path: Path) -> None:
    actor = (
        "import os, sys; from pathlib import Path;"
        "from trackway_trainer_agent.worker.trainer_process import TrainerProcess;"
        "t = TrainerProcess(['sh', '-c', 'setsid sleep 600 & sleep 600'], folder=Path('/'), environment=os.environ);"
        "print(t.pid, flush=True); t.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", actor], stdout=subprocess.PIPE, env={**os.environ, MARK: str(tmp_path)}
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        assert eventually(lambda: len(alive(tmp_path)) >= 5)
        os.kill(process.pid, signal.SIGKILL)
        assert eventually(lambda: not alive(tmp_path))
