"""Faults that somebody brings about from outside of the program."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.faults.corpus.hosts import MemoryCgroup, give_eio, small_disk
from tests.faults.corpus.injection import Act, Injection, once_ready
from tests.faults.corpus.injections.in_program import PROGRAMS, SDK, STALLED, TORCH, TORCH_SCRIPT, behind_shell
from tests.faults.corpus.ray_nodes import hands
from tests.faults.corpus.scene import Scene
from tests.support.stack import wait_until

MIB = 1 << 20
SOON = {"retry": {"unknown_kill": {"max": 3, "backoff_s": 0.2}}}
"""The attempt that leaves the checkpoint behind is killed; nobody waits for the next one."""


def kill(sent: signal.Signals, *ranks: int) -> Act:
    """Signal the programs of these ranks."""
    return once_ready(lambda scene: scene.send(sent, *(scene.trainer(rank) for rank in ranks)))


def outgrow(limit_bytes: int, whom: Callable[[Scene], tuple[psutil.Process, ...]]) -> Act:
    """Put processes into a cgroup, and let the program take memory."""

    def act(scene: Scene) -> None:
        cgroup = MemoryCgroup(limit_bytes)
        scene.cleanup.callback(cgroup.remove)
        processes = whom(scene)
        cgroup.take(*processes)
        scene.hurt.append({"pid": processes[0].pid, "program": processes[0].name(), "sent": "SIGKILL by the kernel"})
        scene.say("go")

    return once_ready(act)


def loader_worker(scene: Scene) -> tuple[psutil.Process, ...]:
    """The trainer's child that loads."""
    said = scene.said("worker.pid")
    wait_until(lambda: said.exists() and bool(said.read_text()), 30, what="the loader's worker")
    return (psutil.Process(int(said.read_text())),)


def behind(scene: Scene) -> tuple[psutil.Process, ...]:
    """What the shell runs."""
    return tuple(scene.trainer().children())


def own_data(scene: Scene) -> Mapping[str, Any]:
    """The run reads a dataset of its own."""
    name, _ = scene.dataset()
    return {"datasets": [name]}


def changed_shard(scene: Scene) -> Mapping[str, Any]:
    name, folder = scene.dataset()
    shard = folder / "part1.txt"
    shard.write_text(shard.read_text().replace("0.25", "0.75"))
    return {"datasets": [name]}


def missing_shard(scene: Scene) -> Mapping[str, Any]:
    name, folder = scene.dataset()
    (folder / "part1.txt").unlink()
    return {"datasets": [name]}


def unreadable_shard(scene: Scene) -> Mapping[str, Any]:
    name, folder = scene.dataset()
    give_eio(scene.cleanup, folder / "part1.txt")
    return {"datasets": [name]}


def own_code(scene: Scene) -> Mapping[str, Any]:
    """Code that no other run has, so that no node has it yet."""
    code = scene.meeting / "code"
    shutil.copytree(PROGRAMS, code, ignore=shutil.ignore_patterns("__pycache__"))
    (code / "only_here.txt").write_text(str(scene.meeting))
    return {"code": {"path": str(code)}}


def own_disk(scene: Scene) -> Mapping[str, Any]:
    small_disk(scene.cleanup, scene.meeting / "disk")
    return {}


def damage(file: Path) -> None:
    """Flip one bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.chmod(0o600)
    file.write_bytes(content)


def damage_manifest(scene: Scene) -> None:
    [dataset] = scene.followed.one("RunSubmitted")["spec"]["datasets"]
    damage(scene.blob(dataset["manifest_digest"]))


def eio_for_manifest(scene: Scene) -> None:
    [dataset] = scene.followed.one("RunSubmitted")["spec"]["datasets"]
    give_eio(scene.cleanup, scene.blob(dataset["manifest_digest"]))


def damage_code(scene: Scene) -> None:
    damage(scene.blob(scene.followed.one("RunSubmitted")["spec"]["code"]["archive_digest"]))


def chosen(scene: Scene) -> Path:
    """Folder of the checkpoint that the newest attempt goes on from."""
    target = scene.followed.named("ResumeTargetChosen")[-1]["checkpoint"]
    below = scene.object(f"checkpoints/{scene.followed.run_id}/data")
    [folder] = [folder for folder in below.iterdir() if folder.name.endswith(target["nonce"])]
    return folder


def payload(scene: Scene) -> Path:
    """The largest file of that checkpoint."""
    files = [path for path in chosen(scene).rglob("*") if path.is_file() and path.name != "manifest.json"]
    return max(files, key=lambda path: path.stat().st_size)


def cut_short(scene: Scene) -> None:
    file = payload(scene)
    file.chmod(0o600)
    os.truncate(file, file.stat().st_size // 2)


def resumed(do: Callable[[Scene], None]) -> tuple[Act, ...]:
    """The first attempt is killed once its checkpoint is committed; the second finds it damaged.

    An actor that is kept for the second attempt stands still until the damage is done: else it is quicker.
    """
    actors: dict[str, psutil.Process] = {}

    def leave(scene: Scene) -> None:
        actors[scene.followed.run_id] = scene.actor()
        scene.send(signal.SIGKILL, scene.trainer())

    def hold(scene: Scene) -> None:
        _signal_if_there(actors[scene.followed.run_id], signal.SIGSTOP)

    def damage_and_let_go(scene: Scene) -> None:
        try:
            do(scene)
        finally:
            _signal_if_there(actors[scene.followed.run_id], signal.SIGCONT)

    return (
        Act("CheckpointCommitted", leave),
        Act("RetryDecided", hold),
        Act("ResumeTargetChosen", damage_and_let_go, attempt=2),
    )


def _signal_if_there(process: psutil.Process, sent: signal.Signals) -> None:
    try:
        process.send_signal(sent)
    except psutil.NoSuchProcess:
        return  # It was not kept.


def kill_actor(scene: Scene) -> None:
    scene.send(signal.SIGKILL, scene.actor())


def kill_launcher(scene: Scene) -> None:
    scene.send(signal.SIGKILL, scene.launcher())


def remove_actor(scene: Scene) -> None:
    actor = scene.actor()
    scene.hurt.append({"pid": actor.pid, "program": actor.name(), "sent": "ray.kill"})
    hands(scene.stack, "kill", scene.rank(0)["actor"]).communicate(timeout=30)


def cancel(scene: Scene) -> None:
    scene.client.cancel(scene.followed.run_id, reason="seen enough")


def dies_and_comes_back(part: str) -> Act:
    """Kill a part of the control plane, wait until it is back, and let the program finish."""

    def act(scene: Scene) -> None:
        before = scene.stack.kill(part)
        assert before.process is not None
        scene.hurt.append({"pid": before.process.pid, "program": part, "sent": "SIGKILL"})
        scene.stack.wait_restarted(before)
        scene.say("stop")

    return once_ready(act)


def driver_dies(scene: Scene) -> None:
    agent = scene.stack.child("trainer-agent").process
    assert agent is not None
    drivers = [child for child in psutil.Process(agent.pid).children() if "driver" in " ".join(child.cmdline())]
    scene.send(signal.SIGKILL, *drivers)
    wait_until(lambda: not any(driver.is_running() for driver in drivers), 10, what="the driver to be gone")
    scene.say("stop")


def kill_after_handling(scene: Scene) -> None:
    scene.send(signal.SIGKILL, scene.trainer())


def kill_head(scene: Scene) -> None:
    head = scene.stack.child("ray").process
    assert head is not None
    everything = [psutil.Process(head.pid), *psutil.Process(head.pid).children(recursive=True)]
    before = scene.stack.child("ray")
    scene.send(signal.SIGKILL, *everything)
    scene.stack.wait_restarted(before)


CONTROL_PLANE = {"alone": True, "limit_s": 120.0}
INJECTIONS: dict[str, Injection] = {
    # host memory
    "cgroup-kills-trainer": Injection(kind="outgrow", acts=(outgrow(64 * MIB, lambda scene: (scene.trainer(),)),)),
    "cgroup-kills-in-container": Injection(
        kind="outgrow",
        acts=(outgrow(512 * MIB, lambda scene: (scene.trainer(), scene.launcher(), scene.actor())),),
    ),
    "cgroup-kills-loader-worker": Injection(
        kind="hungry-worker", entry=TORCH, acts=(outgrow(64 * MIB, loader_worker),)
    ),
    "cgroup-kills-behind-shell": Injection(kind="outgrow", entry=behind_shell(), acts=(outgrow(64 * MIB, behind),)),
    # kills
    "sigkill-one-rank": Injection(kind="meet", entry=TORCH, acts=(kill(signal.SIGKILL, 1),)),
    "sigkill-all-ranks": Injection(acts=(kill(signal.SIGKILL, 0, 1),)),
    "sigterm-one-rank": Injection(kind="meet", entry=TORCH, acts=(kill(signal.SIGTERM, 1),)),
    "actor-sigkill": Injection(acts=(once_ready(kill_actor),)),
    "actor-removed": Injection(acts=(once_ready(remove_actor),)),
    "launcher-sigkill": Injection(acts=(once_ready(kill_launcher),)),
    "rank-frozen": Injection(kind="wait", entry=SDK, spec=STALLED, acts=(kill(signal.SIGSTOP, 0),)),
    # data
    "shard-changed": Injection(entry=SDK, before=changed_shard),
    "shard-missing": Injection(entry=SDK, before=missing_shard),
    "manifest-damaged": Injection(before=own_data, acts=(Act("RunSubmitted", damage_manifest),)),
    # checkpoints
    "checkpoint-bit-flip": Injection(
        kind="keep", entry=SDK, spec=SOON, acts=resumed(lambda scene: damage(payload(scene)))
    ),
    "checkpoint-truncated": Injection(kind="keep", spec=SOON, acts=resumed(cut_short)),
    "checkpoint-file-missing": Injection(kind="keep", spec=SOON, acts=resumed(lambda scene: payload(scene).unlink())),
    "checkpoint-manifest-damaged": Injection(
        kind="keep", spec=SOON, acts=resumed(lambda scene: damage(chosen(scene) / "manifest.json"))
    ),
    "checkpoint-of-another-model": Injection(kind="wider", entry=SDK, spec=SOON, acts=resumed(lambda scene: None)),
    # storage
    "disk-full": Injection(kind="fill-disk", before=own_disk),
    "store-eio-at-start": Injection(before=own_data, acts=(Act("RunSubmitted", eio_for_manifest),)),
    "data-eio": Injection(entry=SDK, before=unreadable_shard),
    "code-archive-damaged": Injection(before=own_code, acts=(Act("RunSubmitted", damage_code),)),
    # intent
    "cancelled-in-step": Injection(kind="wait", entry=SDK, acts=(once_ready(cancel),)),
    "cancelled-at-start": Injection(acts=(Act("AttemptStarted", cancel),)),
    "cancelled-deaf": Injection(kind="deaf", acts=(once_ready(cancel),)),
    # control plane
    "agent-killed": Injection(acts=(dies_and_comes_back("trainer-agent"),), **CONTROL_PLANE),
    "agent-driver-killed": Injection(acts=(once_ready(driver_dies),), **CONTROL_PLANE),
    "scheduler-killed": Injection(acts=(dies_and_comes_back("scheduler"),), **CONTROL_PLANE),
    "log-killed": Injection(acts=(dies_and_comes_back("kafka"),), **CONTROL_PLANE),
    "head-lost": Injection(acts=(once_ready(kill_head),), **CONTROL_PLANE),
    # combinations
    "disk-full-and-resets": Injection(kind="disk-full-among-others", entry=TORCH_SCRIPT, before=own_disk),
    "cancelled-and-host-oom": Injection(kind="oom-when-told", acts=(once_ready(cancel),)),
    "old-traceback-then-kill": Injection(kind="handle-and-wait", acts=(once_ready(kill_after_handling),)),
}
