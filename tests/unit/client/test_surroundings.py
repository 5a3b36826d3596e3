"""What a process finds around it decides whose session it opens."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from trackway.training.opening import local_run
from trackway.training.session import Given
from trackway.training.surroundings import Ranks, read_surroundings


def test_nothing_is_needed_to_start_by_hand() -> None:
    found = read_surroundings({})
    assert found.ranks == Ranks(rank=0, local_rank=0, world_size=1)
    assert found.supervised is None
    assert found.local_folder == Path(".trackway")


def test_torchruns_contract_is_read() -> None:
    found = read_surroundings({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "OMP_NUM_THREADS": "2"})
    assert found.ranks == Ranks(rank=3, local_rank=1, world_size=4)
    assert found.threads == 2


def test_supervised_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(json.dumps([{"name": "words", "manifest": "/m.json", "weight": 0.5}]))
    found = read_surroundings(
        {
            "TRACKWAY_RANK_SOCKET": "/s/sdk",
            "TRACKWAY_RUN_ID": "run",
            "TRACKWAY_ATTEMPT_TOKEN": "token",
            "TRACKWAY_IN_FLIGHT": "skip",
            "TRACKWAY_ERROR_FILE": "/e",
            "TRACKWAY_STACKS": "/t",
            "TRACKWAY_CONFIG": "/c",
            "TRACKWAY_DATASETS": str(tmp_path / "index.json"),
            "TRACKWAY_SEED": "18446744073709551615",
            "TRACKWAY_RESUME_FROM": "/r/data/x",
            "TRACKWAY_RESUME_MANIFEST_DIGEST": "sha256:00",
            "TRACKWAY_RESUME_STEP": "40",
        }
    )
    assert found.seed == 2**64 - 1
    assert found.supervised is not None
    assert found.supervised.skips_when_busy
    assert found.supervised.datasets[0].weight == 0.5
    assert found.supervised.resume is not None
    assert (found.supervised.resume.folder, found.supervised.resume.step) == (Path("/r/data/x"), 40)


def test_same_program_with_the_same_config_and_seed_is_the_same_local_run() -> None:
    def run_of(config: dict[str, float], seed: int) -> str:
        given = Given(
            device=torch.device("cpu"), config=config, seed=seed, datasets={}, skips_when_busy=False, error_file=None
        )
        return local_run(read_surroundings({}), given).inputs.run_id

    assert run_of({"lr": 0.1}, 1) == run_of({"lr": 0.1}, 1)
    assert len({run_of({"lr": 0.1}, 1), run_of({"lr": 0.2}, 1), run_of({"lr": 0.1}, 2)}) == 3
