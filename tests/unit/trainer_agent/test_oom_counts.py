"""Kernel kills of a rank's cgroups, and when the last one came."""

from __future__ import annotations

from pathlib import Path

from trackway_trainer_agent.worker.oom_counts import OomCounts


def counter(folder: Path, name: str, kills: int) -> Path:
    file = folder / name
    file.write_text(f"low 0\noom_kill {kills}\n")
    return file


def test_only_an_increase_is_a_kill_and_has_a_time(tmp_path: Path):
    moments = iter([10, 20])
    counts = OomCounts(lambda: next(moments))
    assert (counts.kills, counts.last_at_ms) == (None, None)
    counts.count(counter(tmp_path, "a", 7))
    counts.count_all()
    assert (counts.kills, counts.last_at_ms) == (0, None)
    counter(tmp_path, "a", 8)
    counts.count_all()
    counts.count_all()
    assert (counts.kills, counts.last_at_ms) == (1, 10)
    counts.count(counter(tmp_path, "b", 3))
    counter(tmp_path, "b", 5)
    counts.count_all()
    assert (counts.kills, counts.last_at_ms) == (2, 20)


def test_a_cgroup_that_was_removed_keeps_its_count(tmp_path: Path):
    counts = OomCounts(lambda: 10)
    file = counter(tmp_path, "a", 0)
    counts.count(file)
    counter(tmp_path, "a", 1)
    counts.count_all()
    file.unlink()
    counts.count_all()
    assert (counts.kills, counts.last_at_ms) == (1, 10)
