"""Opens a session from what the process finds around it."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from trackway_common.canonical import digest
from trackway_common.checkpoint.rank_part import RunInputs
from trackway_common.rank_protocol.error_file import install_excepthook

from trackway.training.actor_keeper import ActorKeeper
from trackway.training.datasets import Dataset, given_datasets, local_datasets
from trackway.training.local_keeper import LocalKeeper, LocalRun
from trackway.training.process_group import ProcessGroup
from trackway.training.session import Given, Session
from trackway.training.surroundings import Supervised, Surroundings, read_surroundings


def session(
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    datasets: Mapping[str, str | Path] | None = None,
    splits: Sequence[str] = (),
) -> Session:
    """Open this process's session: ``with trackway.training.session() as s:``.

    Under Trackway everything comes from the submitted run and the arguments are not looked at. They are for a program
    that is started by hand (``python train.py`` or ``torchrun … train.py``), which trains and checkpoints as well,
    into ``$TRACKWAY_LOCAL_DIR`` (default ``./.trackway``).

    Args:
        config: hyperparameters. Another config is another run, with its own checkpoints.
        seed: of the run.
        datasets: folders by dataset name; they are hashed at the start.
        splits: ``NAME=FRACTION``, as ``trackway dataset snapshot --split`` takes them.
    """
    surroundings = read_surroundings(os.environ)
    device = _device(surroundings)
    torch.set_num_threads(surroundings.threads)
    # Not use_deterministic_algorithms: that also loads torch's compiler, seconds at every start.
    torch.set_deterministic_debug_mode("error" if surroundings.deterministic else "default")
    if surroundings.supervised is not None:
        return _supervised(surroundings, surroundings.supervised, device)
    group = ProcessGroup(surroundings.ranks, device)
    found = local_datasets(datasets or {}, splits)
    given = Given(device=device, config=config or {}, seed=seed, datasets=found, skips_when_busy=False, error_file=None)
    return Session(given, group=group, keeper=LocalKeeper(local_run(surroundings, given), group))


def local_run(surroundings: Surroundings, given: Given) -> LocalRun:
    """The run that a program started by hand belongs to."""
    config_digest = digest(dict(given.config) | {"seed": str(given.seed)})
    inputs = RunInputs(
        run_id=f"{surroundings.program}-{config_digest.partition(':')[2][:8]}",
        world_size=surroundings.ranks.world_size,
        config_digest=config_digest,
        code_digest="",
        dataset_digests=_digests(given.datasets),
    )
    return LocalRun(folder=surroundings.local_folder.absolute(), inputs=inputs)


def _supervised(surroundings: Surroundings, supervised: Supervised, device: torch.device) -> Session:
    """Errors and stacks can be told before the ranks join: joining is where starts hang."""
    opened: list[Session] = []
    install_excepthook(supervised.error_file, lambda: opened[0].step if opened else None)
    # Line by line into a file that stays open: a handler can't open one.
    faulthandler.register(signal.SIGUSR2, file=supervised.stacks.open("a"), all_threads=True)
    keeper = ActorKeeper(supervised)
    given = Given(
        device=device,
        config=json.loads(supervised.config.read_text(encoding="utf-8")),
        seed=surroundings.seed or 0,
        datasets=given_datasets(supervised.datasets),
        skips_when_busy=supervised.skips_when_busy,
        fails_on_non_finite_loss=supervised.fails_on_non_finite_loss,
        error_file=supervised.error_file,
    )
    made = Session(given, group=ProcessGroup(surroundings.ranks, device), keeper=keeper)
    opened.append(made)
    return made


def _device(surroundings: Surroundings) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", surroundings.ranks.local_rank)
    torch.cuda.set_device(device)
    return device


def _digests(datasets: Mapping[str, Dataset]) -> tuple[str, ...]:
    return tuple(sorted(dataset.manifest_digest for dataset in datasets.values()))
