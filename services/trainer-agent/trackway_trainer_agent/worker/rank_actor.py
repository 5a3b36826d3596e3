"""The actor of one rank: a plain class that the agent wraps with ``ray.remote`` and names.

All state of the rank is here, so that a restarted agent finds the actor by its name and goes on with ``drain``.
Every method returns at once but ``stacks`` (up to 3 s) and ``close``; they are meant for one caller at a time.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import tempfile
import threading
from pathlib import Path

from trackway_common.errors import CommandRejected

from trackway_trainer_agent.worker.free_port import HeldPort, address_towards
from trackway_trainer_agent.worker.journal import Journal
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.record_buffer import RecordBuffer
from trackway_trainer_agent.worker.records import DrainBatch, Pong, RankDescription, RankPhase, StackDump
from trackway_trainer_agent.worker.stacks import kernel_stacks, python_stacks
from trackway_trainer_agent.worker.supervision import Supervision
from trackway_trainer_agent.worker.workplace import make_workplace


class RankActor:
    """Supervises one training process."""

    def __init__(self, *, scratch: str | None = None, peer: str = "127.0.0.1") -> None:
        """Make the rank's working folder.

        Args:
            scratch: node-local folder for it and the code cache; default: one of this user under the temporary folder.
            peer: address of the Ray head: the way to it decides which of the node's addresses other ranks are given.
        """
        default = Path(tempfile.gettempdir()) / f"trackway-{os.getuid()}"
        self._scratch = Path(scratch) if scratch else default
        self._peer = peer
        self._starting = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        """Be new: nothing of an attempt before is left but this process."""
        self._place = make_workplace(self._scratch)
        self._journal = Journal(RecordBuffer(self._place.buffer))
        self._port = HeldPort()
        self._spec: RankSpec | None = None
        self._supervision: Supervision | None = None

    def describe(self) -> RankDescription:
        """Where this actor is and what it was granted."""
        granted = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return RankDescription(
            node=_ray_node() or platform.node(),
            host=socket.gethostname(),
            address=address_towards(self._peer),
            free_port=self._port.number,
            actor_pid=os.getpid(),
            python=sys.executable,
            python_version=platform.python_version(),
            devices=tuple(filter(None, granted.split(","))),
            cpus=len(os.sched_getaffinity(0)),
        )

    def renew(self) -> RankDescription:
        """Forget an attempt that is over, with its folder, its socket and its records; a new actor stays as it is.

        Raises:
            CommandRejected: the attempt's program, or a save of it, is not over.
        """
        with self._starting:
            if self._spec is not None:
                if self._journal.phase is not RankPhase.ENDED:
                    raise CommandRejected(f"attempt {self._spec.attempt} is not over here", reason="NOT_OVER")
                self.close()
                self._begin()
        return self.describe()

    def start(self, spec: RankSpec) -> None:
        """Begin to prepare and run the trainer; how that went comes as a record. The same spec again changes nothing.

        Raises:
            CommandRejected: this actor was started with another spec, and not renewed since.
        """
        with self._starting:
            if self._spec is not None and self._spec != spec:
                raise CommandRejected(f"this actor runs attempt {self._spec.attempt}", reason="ALREADY_STARTED")
            if self._spec is None:
                self._spec = spec
                self._supervision = Supervision(
                    spec, place=self._place, journal=self._journal, release_port=self._port.release
                )

    def drain(self, after: int, limit: int = 2000) -> DrainBatch:
        """Records behind the cursor, at most ``limit``; 0 reads all facts again, also those read before."""
        return self._journal.drain(after, limit)

    def stop(self, grace_s: float) -> None:
        """SIGTERM to the trainer's process group; after the grace, SIGKILL to all that is left."""
        if self._supervision is not None:
            self._supervision.stop(grace_s)

    def kill(self) -> None:
        """SIGKILL to the trainer and everything that it started. What it captured is still saved."""
        if self._supervision is not None:
            self._supervision.kill()

    def stacks(self) -> StackDump:
        """Where the trainer is right now."""
        supervision = self._supervision
        pid = supervision.trainer_pid if supervision is not None else None
        if supervision is None or pid is None:
            return StackDump(source="none", text="")
        if supervision.dumps_stacks:
            text = python_stacks(self._place.stacks, supervision.dump_stacks)
            if text:
                return StackDump(source="faulthandler", text=text)
        return kernel_stacks(pid)

    def ping(self) -> Pong:
        """Alive, and how far."""
        return Pong(
            phase=self._journal.phase,
            last_step=self._journal.last_step,
            trainer_pid=self._supervision.trainer_pid if self._supervision is not None else None,
            newest_record=self._journal.newest_record,
        )

    def close(self) -> None:
        """Kill what runs, finish the save in flight, remove the working folder; the actor is of no use afterwards."""
        if self._supervision is not None:
            self._supervision.kill()
            self._supervision.join()
        self._port.release()
        self._journal.close()
        self._place.close()


def _ray_node() -> str | None:
    """Node id where this runs as a Ray actor; Ray is not imported for it."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    return str(ray.get_runtime_context().get_node_id())
