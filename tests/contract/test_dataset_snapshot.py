"""What the client takes as a snapshot is what the scheduler registers and a trainer reads."""

from __future__ import annotations

from pathlib import Path

from trackway.client.dataset_files import Globs
from trackway.client.snapshot import take_snapshot
from trackway.client.splits import parse_splits
from trackway_common.dataset_manifest import dataset_files, parse_manifest
from trackway_scheduler.domain.manifests import check_manifest


def test_a_snapshot_passes_the_schedulers_check_unchanged(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"mödule_{i}.py").write_text("x" * i)
    taken = take_snapshot("stdlib", (tmp_path,), Globs(), parse_splits(["heldout=0.3"]))
    checked = check_manifest(taken.manifest)
    assert checked.canonical == taken.manifest
    assert (checked.name, checked.files, checked.size_bytes) == ("stdlib", 40, sum(range(40)))
    assert checked.splits == ("heldout", "train")
    held_out = dataset_files(parse_manifest(checked.canonical), "heldout")
    assert {file.read_bytes() for file in held_out} <= {b"x" * i for i in range(40)}
