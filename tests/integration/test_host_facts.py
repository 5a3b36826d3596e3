"""What the node tells of a real trainer's end: memory bounds, cgroups, the kernel's log, room."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from trackway_common.events import FailureRule, TerminationReason
from trackway_trainer_agent.worker.kernel_log import KernelLog
from trackway_trainer_agent.worker.rank_actor import RankActor

from tests.integration.rank_harness import ended, run_to_end, script_spec

GROWS = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; x = b'x' * (300 << 20); time.sleep(600)"])
time.sleep(600)
"""
IN_CGROUP = """
import os
open(os.path.join({cgroup!r}, "cgroup.procs"), "w").write(str(os.getpid()))
x = bytearray()
while True:
    x += b"x" * (1 << 20)
"""


@pytest.fixture
def actor(tmp_path: Path) -> Iterator[RankActor]:
    made = RankActor(scratch=str(tmp_path / "scratch"))
    yield made
    made.close()


def place_for_memory_cgroups(root: Path = Path("/sys/fs/cgroup"), own: str | None = None) -> tuple[Path, str] | None:
    """A folder in which a memory cgroup can be made, and the file that bounds it.

    Under v2 only a cgroup that hands the memory controller down has children with it: ours or one above.
    """
    if os.access(root / "memory" / "cgroup.procs", os.W_OK):
        return root / "memory", "memory.limit_in_bytes"
    lines = (own if own is not None else Path("/proc/self/cgroup").read_text()).splitlines()
    for path in (line.removeprefix("0::/") for line in lines if line.startswith("0::/")):
        for folder in (root / path, *(root / path).parents):
            handed_down = folder / "cgroup.subtree_control"
            if not folder.is_relative_to(root) or not handed_down.exists():
                break
            if "memory" in handed_down.read_text().split() and os.access(folder / "cgroup.procs", os.W_OK):
                return folder, "memory.max"
    return None


@pytest.fixture
def cgroup() -> Iterator[Path]:
    place = place_for_memory_cgroups()
    if place is None:
        pytest.skip("needs a writable memory cgroup (v1, or v2 with the memory controller handed down)")
    parent, bound = place
    made = parent / f"trackway-test-{uuid.uuid4().hex[:8]}"
    made.mkdir()
    (made / bound).write_text(str(64 << 20))
    if (swap := made / "memory.swap.max").exists():
        swap.write_text("0")
    yield made
    made.rmdir()


def test_a_family_over_its_memory_bound_is_killed_and_says_why(actor: RankActor, tmp_path: Path):
    spec = script_spec(tmp_path / "objects", {"train.py": GROWS})
    exited = ended(run_to_end(actor, replace(spec, memory_bytes=200 << 20)))
    assert exited.signal == "SIGKILL"
    assert not exited.stop_requested
    assert exited.host.memory_bound_bytes == 200 << 20
    assert exited.host.killed_over_bound_bytes > 200 << 20


def test_a_place_for_cgroups_is_found_where_v2_hands_the_controller_down(tmp_path: Path):
    inner = tmp_path / "system" / "ours"
    inner.mkdir(parents=True)
    for folder, controllers in ((inner, ""), (inner.parent, "cpu memory"), (tmp_path, "cpu memory")):
        (folder / "cgroup.subtree_control").write_text(controllers + "\n")
        (folder / "cgroup.procs").write_text("")
    assert place_for_memory_cgroups(tmp_path, "0::/system/ours\n") == (inner.parent, "memory.max")
    (inner.parent / "cgroup.subtree_control").write_text("cpu\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    assert place_for_memory_cgroups(tmp_path, "0::/system/ours\n") is None


def test_a_kernel_kill_in_the_trainers_own_cgroup_is_counted(actor: RankActor, tmp_path: Path, cgroup: Path):
    program = IN_CGROUP.format(cgroup=str(cgroup))
    exited = ended(run_to_end(actor, script_spec(tmp_path / "objects", {"train.py": program})))
    assert (exited.signal, exited.oom_kills) == ("SIGKILL", 1)
    if os.access("/dev/kmsg", os.R_OK):
        assert any("Killed process" in line for line in exited.host.kernel_lines)


def test_room_is_told_and_a_rule_of_the_spec_is_matched(actor: RankActor, tmp_path: Path):
    spec = script_spec(tmp_path / "objects", {"train.py": "print('mount 7 lost'); raise SystemExit(3)"})
    rules = (FailureRule(log=r"mount \d lost", reason=TerminationReason.STORAGE_TRANSIENT),)
    exited = ended(run_to_end(actor, replace(spec, failure_rules=rules)))
    assert exited.rule is not None
    assert (exited.rule.reason, exited.rule.matched) == ("STORAGE_TRANSIENT", "mount 7 lost")
    assert {"/dev/shm"} < {one.mount for one in exited.host.filesystems}
    assert all(0 <= one.free_bytes <= one.total_bytes for one in exited.host.filesystems)


def test_a_kernel_log_that_is_empty_or_away_says_nothing(tmp_path: Path):
    log = tmp_path / "kmsg"
    log.write_text("")
    assert KernelLog(log).lines({1}) == ()
    assert KernelLog(tmp_path / "none").lines({1}) == ()


def test_the_kernels_own_log_is_read_of_our_processes_only():
    if not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("needs a kernel log that can be written")
    before = KernelLog()
    pid = int(subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"]))
    Path("/dev/kmsg").write_text(f"<6>Out of memory: Killed process {pid} (python)\n")
    assert any(f"Killed process {pid} " in line for line in before.lines({pid}))
    assert before.lines({1}) == ()
    assert KernelLog().lines({pid}) == ()
