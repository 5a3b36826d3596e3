"""Dataset manifests: what they hold, that they stay the same, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from trackway.client.dataset_files import Globs
from trackway.client.snapshot import take_snapshot
from trackway.client.splits import parse_splits
from trackway_common.canonical import canonical_json, digest
from trackway_common.dataset_manifest import dataset_files, parse_manifest
from trackway_common.errors import CommandRejected

EVERYTHING = parse_splits([])


class _Told:
    def __init__(self) -> None:
        self.total_bytes = self.done_bytes = 0

    def begin(self, what: str, total_bytes: int) -> None:
        self.total_bytes = total_bytes

    def advance(self, done_bytes: int) -> None:
        self.done_bytes += done_bytes


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for i in range(40):
        path = tmp_path / f"pkg{i % 3}" / f"module_{i}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content {i}\n")
    (tmp_path / "notes.txt").write_text("no module")
    return tmp_path


def test_a_manifest_holds_every_file_by_digest(corpus: Path) -> None:
    rule, told = parse_splits(["heldout=0.3"]), _Told()
    taken = take_snapshot("stdlib", (corpus,), Globs(include=("*.py",)), rule, told)
    body = json.loads(taken.manifest)
    assert canonical_json(body) == taken.manifest
    assert (body["name"], body["root"], len(body["files"])) == ("stdlib", str(corpus), 40)
    assert [file["path"] for file in body["files"]] == sorted(file["path"] for file in body["files"])
    assert told.total_bytes == told.done_bytes == sum(file["bytes"] for file in body["files"])
    for split in taken.splits:
        chosen = [file for file in body["files"] if file["split"] == split.name]
        assert split.files == len(chosen)
        content = [{key: value for key, value in file.items() if key != "split"} for file in chosen]
        assert split.digest == body["splits"][split.name] == digest(content)


def test_readers_accept_it_and_find_the_files_unchanged(corpus: Path) -> None:
    manifest = parse_manifest(take_snapshot("d", (corpus,), Globs(), parse_splits(["test=0.2"])).manifest)
    assert b"".join(file.read_bytes() for file in dataset_files(manifest, "test"))


def test_the_same_files_give_the_same_manifest_at_any_time(corpus: Path) -> None:
    first = take_snapshot("d", (corpus,), Globs(), parse_splits(["a=0.2", "b=0.3"]))
    for path in corpus.rglob("*"):
        os.utime(path, (5, 5))
    assert take_snapshot("d", (corpus,), Globs(), parse_splits(["b=0.3", "a=0.2"])).manifest == first.manifest


def test_a_new_file_moves_no_other_between_splits(corpus: Path) -> None:
    rule = parse_splits(["heldout=0.3"])

    def splits() -> dict[str, str]:
        body = json.loads(take_snapshot("d", (corpus,), Globs(), rule).manifest)
        return {file["path"]: file["split"] for file in body["files"]}

    before = splits()
    (corpus / "pkg0" / "another.py").write_text("more")
    assert before.items() <= splits().items()


def test_several_paths_share_their_common_folder_as_root(corpus: Path) -> None:
    taken = take_snapshot("d", (corpus / "pkg0", corpus / "pkg1" / "module_1.py", corpus / "pkg0"), Globs(), EVERYTHING)
    body = json.loads(taken.manifest)
    assert body["root"] == str(corpus)
    assert {file["path"].split("/")[0] for file in body["files"]} == {"pkg0", "pkg1"}
    assert len({file["path"] for file in body["files"]}) == len(body["files"]) == 15


def test_one_file_has_its_folder_as_root(corpus: Path) -> None:
    body = json.loads(take_snapshot("d", (corpus / "notes.txt",), Globs(), EVERYTHING).manifest)
    assert (body["root"], [file["path"] for file in body["files"]]) == (str(corpus), ["notes.txt"])


def test_excluded_folders_are_not_even_read(corpus: Path) -> None:
    (corpus / "pkg0" / "empty.py").write_text("")
    body = json.loads(take_snapshot("d", (corpus,), Globs(exclude=("pkg0", "*.txt")), EVERYTHING).manifest)
    assert {file["path"].split("/")[0] for file in body["files"]} == {"pkg1", "pkg2"}


def test_a_link_to_a_file_is_read_and_one_to_a_folder_refused(corpus: Path) -> None:
    outside = corpus.parent / f"{corpus.name}-outside" / "blob"
    outside.parent.mkdir()
    outside.write_text("from a cache")
    (corpus / "linked.txt").symlink_to(outside)
    body = json.loads(take_snapshot("d", (corpus,), Globs(include=("*.txt",)), EVERYTHING).manifest)
    assert [file["path"] for file in body["files"]] == ["linked.txt", "notes.txt"]
    (corpus / "folder").symlink_to(outside.parent)
    with pytest.raises(CommandRejected, match="links to a folder"):
        take_snapshot("d", (corpus,), Globs(), EVERYTHING)


def test_empty_files_are_kept_and_counted(corpus: Path) -> None:
    (corpus / "pkg0" / "__init__.py").touch()
    taken = take_snapshot("d", (corpus,), Globs(), EVERYTHING)
    assert taken.empty_files == 1
    sizes = {file["path"]: file["bytes"] for file in json.loads(taken.manifest)["files"]}
    assert sizes["pkg0/__init__.py"] == 0


def test_only_empty_files_are_no_dataset(tmp_path: Path) -> None:
    for i in range(7):
        (tmp_path / f"empty_{i}.py").touch()
    with pytest.raises(CommandRejected, match=r"all 7 files are empty: empty_0\.py"):
        take_snapshot("d", (tmp_path,), Globs(), EVERYTHING)


def test_what_is_no_file_is_refused(corpus: Path) -> None:
    os.mkfifo(corpus / "pipe")
    with pytest.raises(CommandRejected, match="neither a file nor a folder"):
        take_snapshot("d", (corpus,), Globs(), EVERYTHING)
    assert take_snapshot("d", (corpus,), Globs(exclude=("pipe",)), EVERYTHING).empty_files == 0


@pytest.mark.parametrize(
    ("globs", "says"), [(Globs(include=("*.parquet",)), "loosen --include"), (Globs(include=("[z-a]",)), "no glob")]
)
def test_a_selection_of_nothing_is_refused(corpus: Path, globs: Globs, says: str) -> None:
    with pytest.raises(CommandRejected, match=says):
        take_snapshot("d", (corpus,), globs, EVERYTHING)


def test_a_split_without_files_is_refused(corpus: Path) -> None:
    with pytest.raises(CommandRejected, match="heldout got none of 1 files"):
        take_snapshot("d", (corpus / "notes.txt",), Globs(), parse_splits(["heldout=0.0001"]))


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandRejected, match="No such file"):
        take_snapshot("d", (tmp_path / "gone",), Globs(), EVERYTHING)


def test_a_file_that_changes_meanwhile_is_refused(corpus: Path) -> None:
    class Appender(_Told):
        def begin(self, what: str, total_bytes: int) -> None:
            (corpus / "pkg0" / "module_0.py").open("a").write("more")

    with pytest.raises(CommandRejected, match="changed while it was read"):
        take_snapshot("d", (corpus,), Globs(), EVERYTHING, Appender())
