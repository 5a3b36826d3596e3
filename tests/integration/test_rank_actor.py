"""A rank actor without Ray: what it tells of plain programs that know nothing of Trackway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from trackway_common.canonical import canonical_json
from trackway_common.checkpoint.commit import CommitRequest, commit_checkpoint
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import Commit
from trackway_common.checkpoint.layout import parse_path
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.errors import CommandRejected
from trackway_common.events import Entrypoint, EntrypointKind
from trackway_common.object_store import BlobStore, open_store
from trackway_trainer_agent.domain.stack_text import main_frames
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.rank_spec import DatasetInput, RankSpec, ResumeTarget
from trackway_trainer_agent.worker.records import (
    CheckpointCaptured,
    CheckpointPersisted,
    EnvironmentReported,
    LaunchFailed,
    LogLine,
    RankPhase,
    TrainerExited,
    TrainerStarted,
)

from tests.integration.rank_harness import ended, of, records, run_to_end, script_spec, wait_for_end, wait_until


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def actor(tmp_path: Path) -> Iterator[RankActor]:
    made = RankActor(scratch=str(tmp_path / "scratch"))
    yield made
    made.close()
    assert sorted(path.name for path in (tmp_path / "scratch").iterdir()) in ([], ["code"])


def lines(found: list[object], stream: str = "stdout") -> list[str]:
    return [line.text for line in of(LogLine, found) if line.stream == stream]


def test_program_that_ends_well(actor: RankActor, store: Path) -> None:
    code = "import sys; print('hello'); print('warn', file=sys.stderr)"
    found = run_to_end(actor, script_spec(store, {"train.py": code}))
    assert lines(found) == ["hello"]
    assert lines(found, "stderr") == ["warn"]
    (started,) = of(TrainerStarted, found)
    assert started.pid > 0
    exited = ended(found)
    assert (exited.exit_code, exited.signal, exited.error, exited.stop_requested) == (0, None, None, False)
    assert exited.peak_memory_bytes > 1 << 20
    assert found.index(started) < found.index(exited)


def test_contract_of_torchrun_and_nothing_of_the_services(
    actor: RankActor, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKWAY_KAFKA__SASL_PASSWORD", "secret")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/secret")
    monkeypatch.setenv("TRACKWAY_STACK_ID", "stack-1")
    spec = replace(
        script_spec(store, {"train.py": "import json, os; print(json.dumps(dict(os.environ)))"}),
        rank=3,
        local_rank=1,
        world_size=4,
        local_world_size=2,
        group_rank=1,
        group_world_size=2,
        attempt=2,
        master_port=29999,
        environment=(("EXTRA", "1"),),
    )
    seen = json.loads(lines(run_to_end(actor, spec))[0])
    expected = {
        "RANK": "3",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_RANK": "3",
        "ROLE_WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29999",
        "TORCHELASTIC_RUN_ID": spec.run_id,
        "TORCHELASTIC_RESTART_COUNT": "1",
        "TRACKWAY_RUN_ID": spec.run_id,
        "TRACKWAY_ATTEMPT": "2",
        "TRACKWAY_SEED": "7",
        "TRACKWAY_STACK_ID": "stack-1",
        "CUDA_VISIBLE_DEVICES": "",
        "EXTRA": "1",
    }
    assert {name: seen.get(name) for name in expected} == expected
    assert not {"TRACKWAY_KAFKA__SASL_PASSWORD", "RAY_AUTH_TOKEN_PATH"} & seen.keys()


def test_code_is_the_working_folder_and_importable(actor: RankActor, store: Path) -> None:
    files = {"jobs/train.py": "import helper, os; print(helper.NAME, open('data.txt').read(), os.listdir())"}
    files |= {"helper.py": "NAME = 'helper'", "data.txt": "text"}
    found = run_to_end(actor, script_spec(store, files, "jobs/train.py"))
    assert lines(found)[0].startswith("helper text [")


def test_inputs_lie_in_files(actor: RankActor, store: Path) -> None:
    manifest = canonical_json({"name": "words", "root": "/data", "files": [], "splits": {}})
    code = (
        "import json, os\n"
        "print(open(os.environ['TRACKWAY_CONFIG']).read())\n"
        "print(open(json.load(open(os.environ['TRACKWAY_DATASETS']))[0]['manifest']).read())"
    )
    spec = script_spec(store, {"train.py": code}, hyperparameters={"lr": 0.001})
    digest = BlobStore(open_store(store.as_uri())).put(manifest)
    found = run_to_end(actor, replace(spec, datasets=(DatasetInput(name="words", manifest_digest=digest),)))
    assert lines(found) == ['{"lr":0.001}', manifest.decode()]


def test_function_entry_point(actor: RankActor, store: Path) -> None:
    spec = script_spec(store, {"jobs/__init__.py": "", "jobs/fit.py": "def main():\n    print('fitted')"})
    spec = replace(spec, entrypoint=Entrypoint(kind=EntrypointKind.FUNCTION, argv=("jobs.fit:main",)))
    found = run_to_end(actor, spec)
    assert lines(found) == ["fitted"]
    assert ended(found).exit_code == 0


@pytest.mark.parametrize("name", ["jobs.fit:nothing", "jobs.nowhere:main", "nowhere:main"])
def test_function_that_does_not_exist_is_a_configuration_error(actor: RankActor, store: Path, name: str) -> None:
    spec = script_spec(store, {"jobs/__init__.py": "", "jobs/fit.py": ""})
    exited = ended(run_to_end(actor, replace(spec, entrypoint=Entrypoint(kind=EntrypointKind.FUNCTION, argv=(name,)))))
    assert exited.exit_code == 1
    assert exited.error is not None
    assert (exited.error.source, exited.error.trackway_reason) == ("sdk", "CONFIG_INVALID")


def test_command_entry_point(actor: RankActor, store: Path) -> None:
    spec = script_spec(store, {"data.txt": "text"})
    found = run_to_end(
        actor, replace(spec, entrypoint=Entrypoint(kind=EntrypointKind.COMMAND, argv=("sh", "-c", "cat data.txt")))
    )
    assert lines(found) == ["text"]


RAISES = "def f():\n    raise ValueError('bad lr')\nf()"


@pytest.mark.parametrize(
    ("program", "source"),
    [
        (("train.py",), "sdk"),
        ((sys.executable, "-I", "train.py"), "stderr"),
        (("sh", "-c", f"{sys.executable} train.py; exit 1"), "stderr"),
    ],
    ids=["script", "isolated", "behind a shell"],
)
def test_exception_of_a_program_without_the_sdk(
    actor: RankActor, store: Path, program: tuple[str, ...], source: str
) -> None:
    kind = EntrypointKind.SCRIPT if len(program) == 1 else EntrypointKind.COMMAND
    spec = replace(script_spec(store, {"train.py": RAISES}), entrypoint=Entrypoint(kind=kind, argv=program))
    exited = ended(run_to_end(actor, spec))
    assert exited.exit_code == 1
    assert exited.error is not None
    assert (exited.error.source, exited.error.exception_type, exited.error.message) == (source, "ValueError", "bad lr")
    assert exited.error.frames[-1].function == "f"
    assert exited.stderr_tail[-1] == "ValueError: bad lr"


OWN_SITE = "import sys, atexit; print('own sitecustomize'); atexit.register(print, 'own hook', flush=True)"
CHILD_FAILS = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "raise KeyError('of a child')"])
raise SystemExit(7)
"""


def test_only_the_trainers_own_error_counts_and_its_own_sitecustomize_runs(actor: RankActor, store: Path) -> None:
    found = run_to_end(actor, script_spec(store, {"train.py": CHILD_FAILS, "sitecustomize.py": OWN_SITE}))
    exited = ended(found)
    assert exited.exit_code == 7
    assert exited.error is None or exited.error.source == "stderr"
    assert lines(found).count("own sitecustomize") == 2


def test_crash_is_told_by_signal_and_by_its_stack(actor: RankActor, store: Path) -> None:
    exited = ended(run_to_end(actor, script_spec(store, {"train.py": "import ctypes; ctypes.string_at(0)"})))
    assert (exited.exit_code, exited.signal) == (None, "SIGSEGV")
    assert any("Segmentation fault" in line for line in exited.stderr_tail)


def test_killed_from_outside(actor: RankActor, store: Path) -> None:
    actor.start(script_spec(store, {"train.py": "import time; time.sleep(600)"}))
    wait_until(lambda: actor.ping().trainer_pid is not None)
    os.kill(actor.ping().trainer_pid or 0, signal.SIGKILL)
    exited = ended(wait_for_end(actor))
    assert (exited.signal, exited.stop_requested) == ("SIGKILL", False)


def test_stop_gives_grace_then_kills(actor: RankActor, store: Path) -> None:
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *a: print('asked', flush=True))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(1)"
    )
    actor.start(script_spec(store, {"train.py": code}))
    wait_until(lambda: "up" in lines(records(actor)))
    actor.stop(2.0)  # Long enough for a busy machine to run the handler.
    found = wait_for_end(actor)
    assert "asked" in lines(found)
    assert (ended(found).signal, ended(found).stop_requested) == ("SIGKILL", True)


def test_a_stop_after_the_end_did_not_bring_it_about(actor: RankActor, store: Path) -> None:
    """The end takes long to tell: somebody still holds the trainer's output."""
    code = "import os, signal, time; print('up', flush=True); time.sleep(600)"
    actor.start(script_spec(store, {"train.py": code}))
    wait_until(lambda: "up" in lines(records(actor)))
    trainer = actor.ping().trainer_pid or 0
    with Path(f"/proc/{trainer}/fd/1").open("wb"):
        os.kill(trainer, signal.SIGSEGV)
        wait_until(lambda: actor.ping().trainer_pid is None)
        assert actor.ping().phase is RankPhase.RUNNING
        actor.stop(5.0)
        told_at_ms = time.time() * 1000
    exited = ended(wait_for_end(actor))
    assert (exited.signal, exited.stop_requested, exited.stopped_at_ms) == ("SIGSEGV", False, None)
    assert exited.ended_at_ms <= told_at_ms


def test_stop_before_the_process_begins_is_not_forgotten(actor: RankActor, store: Path) -> None:
    actor.start(script_spec(store, {"train.py": "import time; time.sleep(600)"}))
    actor.kill()
    assert ended(wait_for_end(actor)).stop_requested


def test_a_renewed_actor_knows_nothing_of_the_attempt_before(actor: RankActor, store: Path) -> None:
    code = "import os; print(os.environ['TRACKWAY_ATTEMPT'], os.environ['TRACKWAY_RANK_SOCKET'])"
    spec = script_spec(store, {"train.py": code})
    first = run_to_end(actor, spec)
    with pytest.raises(CommandRejected):
        actor.start(replace(spec, attempt=2, epoch=2))
    actor.renew()
    assert records(actor) == []
    second = run_to_end(actor, replace(spec, attempt=2, epoch=2, attempt_token="other"))
    (number, socket), (number_after, socket_after) = lines(first)[0].split(), lines(second)[0].split()
    assert (number, number_after) == ("1", "2")
    assert socket_after != socket
    assert not Path(socket).exists()


def test_a_trainer_that_runs_is_not_renewed_away(actor: RankActor, store: Path) -> None:
    actor.start(script_spec(store, {"train.py": "import time; time.sleep(600)"}))
    wait_until(lambda: actor.ping().trainer_pid is not None)
    with pytest.raises(CommandRejected):
        actor.renew()
    assert actor.ping().phase is RankPhase.RUNNING


def test_start_again_with_the_same_spec_changes_nothing(actor: RankActor, store: Path) -> None:
    spec = script_spec(store, {"train.py": "print('once')"})
    actor.start(spec)
    actor.start(spec)
    with pytest.raises(CommandRejected):
        actor.start(replace(spec, attempt=2))
    assert lines(wait_for_end(actor)) == ["once"]


def test_drain_is_the_same_again_and_facts_stay(actor: RankActor, store: Path) -> None:
    run_to_end(actor, script_spec(store, {"train.py": "print('x')"}))
    first = actor.drain(0)
    assert first.phase is RankPhase.ENDED
    after = actor.drain(first.cursor)
    assert (after.records, after.cursor, after.more) == ((), first.cursor, False)
    again = records(actor)
    assert [type(record) for record in again] == [
        type(numbered.record) for numbered in first.records if not isinstance(numbered.record, LogLine)
    ]


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({"entrypoint": Entrypoint(kind=EntrypointKind.COMMAND, argv=("/nowhere",))}, "execute"),
        ({"entrypoint": Entrypoint(kind=EntrypointKind.COMMAND, argv=())}, "code"),
        ({"code_archive_digest": "sha256:" + "0" * 64}, "code"),
        ({"datasets": (DatasetInput(name="d", manifest_digest="sha256:" + "0" * 64),)}, "inputs"),
        ({"store_url": "s3://bucket"}, "code"),
    ],
)
def test_trainer_that_never_ran_says_at_which_stage(
    actor: RankActor, store: Path, change: dict[str, object], stage: str
) -> None:
    spec = replace(script_spec(store, {"train.py": ""}), **change)
    (failed,) = of(LaunchFailed, run_to_end(actor, spec))
    assert failed.stage == stage
    assert failed.message


def test_environment_is_that_of_the_trainers_interpreter(actor: RankActor, store: Path) -> None:
    (seen,) = of(EnvironmentReported, run_to_end(actor, script_spec(store, {"train.py": ""})))
    report = json.loads(seen.report_json)
    version = subprocess.run(
        [sys.executable, "-c", "import importlib.metadata as m; print(m.version('torch'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert report["distributions"]["torch"] == version
    assert seen.torch_version.startswith(version)
    assert seen.environment_digest.startswith("sha256:")


def test_stacks_of_a_foreign_program_come_from_the_kernel(actor: RankActor, store: Path) -> None:
    assert actor.stacks().source == "none"
    command = Entrypoint(kind=EntrypointKind.COMMAND, argv=("sh", "-c", "echo up; sleep 600; echo over"))
    actor.start(replace(script_spec(store, {}), entrypoint=command))
    wait_until(lambda: "up" in lines(records(actor)))
    wait_until(lambda: "state S" in actor.stacks().text)
    assert actor.stacks().source == "kernel"
    assert actor.ping().phase is RankPhase.RUNNING


def test_a_script_without_the_sdk_tells_its_python_stacks(actor: RankActor, store: Path) -> None:
    code = "import time\ndef waits():\n    print('up', flush=True)\n    time.sleep(600)\nwaits()"
    actor.start(script_spec(store, {"train.py": code}))
    wait_until(lambda: "up" in lines(records(actor)) and actor.ping().phase is RankPhase.RUNNING)
    dump = actor.stacks()
    assert dump.source == "faulthandler"
    assert [frame.function for frame in main_frames(dump.text)] == ["<module>", "waits"]


WRITES_FOLDERS = """
import os, pathlib
root = pathlib.Path(os.environ["TRACKWAY_CHECKPOINT_DIR"])
print("from", os.environ.get("TRACKWAY_RESUME_FROM"))
if "TRACKWAY_RESUME_FROM" in os.environ:
    print((pathlib.Path(os.environ["TRACKWAY_RESUME_FROM"]) / "model/weights.bin").read_text())
for step in (10, 20):
    unfinished = root / f"{step}.tmp"
    (unfinished / "model").mkdir(parents=True)
    (unfinished / "model/weights.bin").write_text(f"weights of {step}")
    unfinished.rename(root / str(step))
(root / "30.tmp").mkdir()
os.kill(os.getpid(), 9)
"""


def test_folders_of_any_program_are_saved_and_given_back(actor: RankActor, store: Path, tmp_path: Path) -> None:
    spec = script_spec(store, {"train.py": WRITES_FOLDERS})
    log = CommitLog(open_store(store.as_uri()), spec.run_id, writer="test", now_ms=lambda: 0)
    raise_fence(log, 1)
    found = run_to_end(actor, spec)
    persisted = of(CheckpointPersisted, found)
    assert [(item.step, item.kind, item.world_size) for item in persisted] == [
        (10, "directory", 1),
        (20, "directory", 1),
    ]
    captured = of(CheckpointCaptured, found)
    assert [(item.step, item.nonce) for item in captured] == [(item.step, item.nonce) for item in persisted]
    assert found.index(captured[-1]) < found.index(of(TrainerExited, found)[0])
    target = committed(log, spec, persisted[-1])
    second = RankActor(scratch=str(tmp_path / "other"))
    again = run_to_end(second, replace(spec, attempt=2, epoch=2, resume=target))
    second.close()
    assert lines(again)[1] == "weights of 20"


def committed(log: CommitLog, spec: RankSpec, persisted: CheckpointPersisted) -> ResumeTarget:
    name = parse_path(persisted.receipt_path.partition("/rank/")[0])
    entry = commit_checkpoint(
        log,
        CommitRequest(
            run_id=spec.run_id,
            name=name,
            world_size=persisted.world_size,
            config_digest=spec.config_digest,
            dataset_digests=(),
        ),
    )
    assert isinstance(entry.body, Commit)
    chosen = choose_resume_target(log, raise_fence(log, spec.epoch + 1)).checkpoint
    assert chosen is not None
    assert chosen.step == persisted.step
    return ResumeTarget(
        step=chosen.step, path=entry.body.path, manifest_digest=entry.body.manifest_digest, run_id=spec.run_id
    )


def test_description_names_place_and_a_port_that_is_free_after_start(actor: RankActor, store: Path) -> None:
    described = actor.describe()
    assert described.address == "127.0.0.1"
    assert described.python == sys.executable
    code = f"import socket; s = socket.socket(); s.bind(('', {described.free_port})); print('bound')"
    assert lines(run_to_end(actor, script_spec(store, {"train.py": code}))) == ["bound"]
