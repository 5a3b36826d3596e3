"""The kernel's kill count, from either version of cgroups."""

from __future__ import annotations

from pathlib import Path

from trackway_common.oom_counter import oom_kills


def process_in(tmp_path: Path, cgroup: str) -> Path:
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "cgroup").write_text(cgroup)
    return tmp_path / "proc"


def test_version_2_counts_in_memory_events(tmp_path: Path) -> None:
    proc = process_in(tmp_path, "0::/user/one\n")
    (tmp_path / "user" / "one").mkdir(parents=True)
    (tmp_path / "user" / "one" / "memory.events").write_text("low 0\noom 4\noom_kill 3\noom_group_kill 0\n")
    assert oom_kills(7, root=tmp_path, proc=proc) == 3


def test_version_1_counts_in_oom_control(tmp_path: Path) -> None:
    proc = process_in(tmp_path, "5:cpu:/x\n4:memory:/one\n0::/\n")
    (tmp_path / "memory" / "one").mkdir(parents=True)
    (tmp_path / "memory" / "one" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert oom_kills(7, root=tmp_path, proc=proc) == 2


def test_counter_that_cannot_be_read_is_unknown_not_zero(tmp_path: Path) -> None:
    assert oom_kills(7, root=tmp_path, proc=process_in(tmp_path, "0::/nowhere\n")) is None
    assert oom_kills(8, root=tmp_path, proc=tmp_path / "proc") is None
