"""The command line and the environment of a trainer: torchrun's contract, and Trackway's on top of it. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from trackway_common.errors import CommandRejected
from trackway_common.events import EntrypointKind
from trackway_common.rank_protocol import error_file

from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.workplace import Workplace

PRIVATE_PREFIXES = ("RAY_", "TRACKWAY_", "TORCHELASTIC_")
"""Ray's internals, and the settings of services, with their secrets: none of a trainer's business."""
PRIVATE = frozenset({"PYTHONBREAKPOINT"})
"""Ray points it at its own debugger."""
DETERMINISTIC = {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""What can only be said before the interpreter and CUDA start: the order of sets, cuBLAS's choice of algorithms."""
KEPT = frozenset({"TRACKWAY_STACK_ID"})
"""`trackway down` finds a stack's processes by it."""


SITE = Path(__file__).with_name("site")
"""First on the trainer's path: see its ``sitecustomize``."""


def command_line(spec: RankSpec, *, python: str, code: Path) -> tuple[str, ...]:
    """The program to execute.

    Raises:
        CommandRejected: the entry point has no kind, or no argument.
    """
    kind, argv = spec.entrypoint.kind, spec.entrypoint.argv
    if not argv:
        raise CommandRejected("the entry point is empty", reason="CONFIG_INVALID")
    match kind:
        case EntrypointKind.FUNCTION:
            return (python, "-u", "-m", "trackway_trainer_agent.worker.function_entry", *argv)
        case EntrypointKind.SCRIPT:
            return (python, "-u", str(code / argv[0]), *argv[1:])
        case EntrypointKind.COMMAND:
            return argv
        case EntrypointKind.UNSPECIFIED:
            raise CommandRejected("the entry point has no kind", reason="CONFIG_INVALID")
        case _ as never:
            assert_never(never)


def trainer_environment(
    spec: RankSpec, *, place: Workplace, code: Path, resume: Path | None, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Everything that the trainer finds in its environment."""
    kept = {name: value for name, value in inherited.items() if name in KEPT or not _is_private(name)}
    python_path = os.pathsep.join(filter(None, (str(SITE), str(code), inherited.get("PYTHONPATH"))))
    return {
        # Defaults that the inherited environment may override.
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        **kept,
        **_torchrun_contract(spec, place),
        **_trackway_contract(spec, place, resume),
        "PYTHONPATH": python_path,
        "CUDA_VISIBLE_DEVICES": ",".join(spec.visible_devices),
        **(DETERMINISTIC if spec.deterministic else {}),
        **dict(spec.environment),
    }


def _is_private(name: str) -> bool:
    return name in PRIVATE or name.startswith(PRIVATE_PREFIXES)


def _torchrun_contract(spec: RankSpec, place: Workplace) -> dict[str, str]:
    """Source: torch.distributed.run, section "Environment Variables"."""
    return {
        "RANK": str(spec.rank),
        "LOCAL_RANK": str(spec.local_rank),
        "GROUP_RANK": str(spec.group_rank),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(spec.rank),
        "WORLD_SIZE": str(spec.world_size),
        "LOCAL_WORLD_SIZE": str(spec.local_world_size),
        "GROUP_WORLD_SIZE": str(spec.group_world_size),
        "ROLE_WORLD_SIZE": str(spec.world_size),
        "MASTER_ADDR": spec.master_addr,
        "MASTER_PORT": str(spec.master_port),
        "TORCHELASTIC_RESTART_COUNT": str(spec.attempt - 1),
        # An attempt restarts nothing inside itself: the scheduler decides on the next one.
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": spec.run_id,
        # Rank 0's trainer hosts the store itself.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCHELASTIC_ERROR_FILE": str(place.torchelastic_error_file),
    }


def _trackway_contract(spec: RankSpec, place: Workplace, resume: Path | None) -> dict[str, str]:
    contract = {
        "TRACKWAY_RANK_SOCKET": str(place.socket),
        "TRACKWAY_RUN_ID": spec.run_id,
        "TRACKWAY_ATTEMPT": str(spec.attempt),
        "TRACKWAY_EPOCH": str(spec.epoch),
        "TRACKWAY_ATTEMPT_TOKEN": spec.attempt_token,
        "TRACKWAY_CONFIG": str(place.config),
        "TRACKWAY_DATASETS": str(place.datasets / "index.json"),
        "TRACKWAY_SEED": str(spec.seed),
        "TRACKWAY_DETERMINISTIC": str(int(spec.deterministic)),
        "TRACKWAY_IN_FLIGHT": spec.in_flight.value.lower(),
        "TRACKWAY_NON_FINITE_LOSS": spec.non_finite_loss,
        "TRACKWAY_CHECKPOINT_DIR": str(place.checkpoints),
        "TRACKWAY_ERROR_FILE": str(place.error_file),
        "TRACKWAY_STACKS": str(place.stacks),
        "TRACKWAY_WRITER": error_file.__file__,
    }
    if resume is not None:
        contract["TRACKWAY_RESUME_FROM"] = str(resume)
    if spec.resume is not None:
        contract["TRACKWAY_RESUME_STEP"] = str(spec.resume.step)
        contract["TRACKWAY_RESUME_MANIFEST_DIGEST"] = spec.resume.manifest_digest
    if spec.traceparent:
        contract["TRACEPARENT"] = spec.traceparent
    return contract
