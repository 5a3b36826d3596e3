"""Plain folders as checkpoints."""

from __future__ import annotations

import os

import pytest
from trackway_common.checkpoint import directory as module
from trackway_common.checkpoint.commit import CommitRequest, commit_checkpoint
from trackway_common.checkpoint.directory import (
    DirectorySave,
    restore_directory,
    stage_directory,
)
from trackway_common.checkpoint.entries import Fence
from trackway_common.checkpoint.layout import CheckpointName, checkpoint_prefix, new_nonce
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.errors import CommandRejected


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "120"
    (path / "optimizer").mkdir(parents=True)
    (path / "model.bin").write_bytes(os.urandom(10_000))
    (path / "optimizer" / "state.bin").write_bytes(os.urandom(500))
    (path / "empty").write_bytes(b"")
    return path


@pytest.fixture
def fenced(disk_run):
    disk_run.log().append(Fence(epoch=1))
    return disk_run


def save_of(run, folder):
    name = CheckpointName(step=120, epoch=1, nonce=new_nonce())
    return DirectorySave(path=folder, run_id=run.run_id, name=name, config_digest="sha256:c")


def commit(log, save):
    """As a rank actor stages a folder and a checkpointer commits it."""
    stage_directory(log.store, save)
    request = CommitRequest(
        run_id=save.run_id,
        name=save.name,
        world_size=1,
        config_digest=save.config_digest,
        dataset_digests=save.dataset_digests,
    )
    return commit_checkpoint(log, request)


def files_of(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_folder_is_committed_and_taken_out_again(fenced, folder, tmp_path):
    entry = commit(fenced.log(), save_of(fenced, folder))
    assert (entry.body.step, entry.body.world_size, entry.body.config_digest) == (120, 1, "sha256:c")
    log = fenced.log()
    target = choose_resume_target(log, raise_fence(log, 2))
    assert target.manifest.layout == "directory"
    restore_directory(fenced.store, target.manifest, tmp_path / "out")
    assert files_of(tmp_path / "out") == files_of(folder)


def test_the_folder_may_change_after_it_was_committed(fenced, folder, tmp_path):
    before = files_of(folder)
    commit(fenced.log(), save_of(fenced, folder))
    (folder / "model.bin").write_bytes(b"next step")
    log = fenced.log()
    target = choose_resume_target(log, raise_fence(log, 2))
    restore_directory(fenced.store, target.manifest, tmp_path / "out")
    assert files_of(tmp_path / "out") == before


def test_a_damaged_checkpoint_is_not_taken_out(fenced, folder, tmp_path):
    log = fenced.log()
    commit(log, save_of(fenced, folder))
    target = choose_resume_target(log, raise_fence(log, 2))
    prefix = checkpoint_prefix(fenced.run_id, target.manifest.name)
    path = fenced.store.local_path(f"{prefix}/shard/model.bin")
    path.chmod(0o644)
    path.write_bytes(bytes(10_000))
    with pytest.raises(CommandRejected, match=r"shard/model\.bin is damaged"):
        restore_directory(fenced.store, target.manifest, tmp_path / "out")


def test_an_empty_folder_is_refused(fenced, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandRejected, match="holds no file"):
        commit(fenced.log(), save_of(fenced, tmp_path / "empty"))


def test_a_missing_folder_is_refused(fenced, tmp_path):
    with pytest.raises(CommandRejected, match="No such file"):
        commit(fenced.log(), save_of(fenced, tmp_path / "none"))


@pytest.mark.parametrize("target", ["model.bin", "optimizer", "nowhere"])
def test_symbolic_links_are_refused(fenced, folder, target):
    (folder / "link").symlink_to(folder / target)
    with pytest.raises(CommandRejected, match="link is no plain file"):
        commit(fenced.log(), save_of(fenced, folder))
    assert fenced.log().slots() == [1]


def test_a_file_that_is_still_written_to_is_refused(fenced, folder, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 1000)
    staged = module._staged

    def touched(root, file):
        made = staged(root, file)

        def chunks():
            for chunk in made.chunks:
                os.utime(root / file, (1, 1))
                yield chunk

        return module.StagedFile(path=made.path, chunks=chunks(), size_bytes=made.size_bytes)

    monkeypatch.setattr(module, "_staged", touched)
    with pytest.raises(CommandRejected, match="changed while it was copied"):
        commit(fenced.log(), save_of(fenced, folder))
    assert fenced.log().slots() == [1]


def test_what_is_only_staged_does_not_exist(fenced, folder):
    stage_directory(fenced.store, save_of(fenced, folder))
    assert fenced.log().refresh().commits == {}
