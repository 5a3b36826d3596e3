"""What a trainer is started with, beyond what the integration tests read back from a real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trackway_common.errors import CommandRejected
from trackway_common.events import Entrypoint, EntrypointKind
from trackway_trainer_agent.worker.rank_spec import ResumeTarget
from trackway_trainer_agent.worker.trainer_environment import SITE, command_line, trainer_environment
from trackway_trainer_agent.worker.workplace import Workplace

from tests.unit.trainer_agent.test_sdk_desk import SPEC

PLACE = Workplace(root=Path("/r"), code_cache=Path("/c"), socket=Path("/r/sdk"))


def environment(spec=SPEC, resume: Path | None = None, **inherited: str) -> dict[str, str]:
    return trainer_environment(spec, place=PLACE, code=Path("/code"), resume=resume, inherited=inherited)


def argv(kind: EntrypointKind, *words: str) -> tuple[str, ...]:
    spec = replace(SPEC, entrypoint=Entrypoint(kind=kind, argv=words))
    return command_line(spec, python="/py", code=Path("/code"))


def test_every_kind_of_entry_point_has_its_command_line() -> None:
    assert argv(EntrypointKind.SCRIPT, "a/train.py", "--x")[2:] == ("/code/a/train.py", "--x")
    assert argv(EntrypointKind.FUNCTION, "m:f")[-1] == "m:f"
    assert argv(EntrypointKind.COMMAND, "sh", "-c", "x") == ("sh", "-c", "x")


@pytest.mark.parametrize(("kind", "words"), [(EntrypointKind.UNSPECIFIED, ("x",)), (EntrypointKind.COMMAND, ())])
def test_entry_point_that_says_nothing_is_refused(kind: EntrypointKind, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandRejected):
        argv(kind, *words)


def test_code_comes_before_the_nodes_own_path_and_behind_what_writes_the_error_file() -> None:
    assert environment()["PYTHONPATH"] == f"{SITE}:/code"
    assert environment(PYTHONPATH="/site")["PYTHONPATH"] == f"{SITE}:/code:/site"
    assert (SITE / "sitecustomize.py").exists()


def test_thread_count_of_the_placement_is_kept() -> None:
    assert environment()["OMP_NUM_THREADS"] == "1"
    assert environment(OMP_NUM_THREADS="4")["OMP_NUM_THREADS"] == "4"


def test_rays_internals_do_not_reach_the_trainer() -> None:
    found = environment(RAY_JOB_ID="1", PYTHONBREAKPOINT="ray.util.rpdb.set_trace", HOME="/h")
    assert not {"RAY_JOB_ID", "PYTHONBREAKPOINT"} & found.keys()
    assert found["HOME"] == "/h"


def test_all_devices_of_the_node_are_visible_so_that_local_rank_is_an_index() -> None:
    spec = replace(SPEC, visible_devices=("2", "5"), local_rank=1)
    assert environment(spec, CUDA_VISIBLE_DEVICES="5")["CUDA_VISIBLE_DEVICES"] == "2,5"


def test_determinism_fixes_what_must_be_fixed_before_start() -> None:
    assert "PYTHONHASHSEED" not in environment()
    assert environment(replace(SPEC, deterministic=True))["PYTHONHASHSEED"] == "0"


def test_resume_target_is_named_only_when_there_is_one() -> None:
    assert "TRACKWAY_RESUME_FROM" not in environment()
    target = ResumeTarget(step=40, path="data/x", manifest_digest="sha256:1", run_id="run")
    found = environment(replace(SPEC, resume=target), resume=Path("/store/data/x"))
    assert found["TRACKWAY_RESUME_FROM"] == "/store/data/x"
    assert (found["TRACKWAY_RESUME_STEP"], found["TRACKWAY_RESUME_MANIFEST_DIGEST"]) == ("40", "sha256:1")
