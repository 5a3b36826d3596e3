"""Everything about the node that is looked at while a trainer runs, to be told at its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from trackway_common.oom_counter import oom_counter

from trackway_trainer_agent.worker.device_health import DeviceHealth
from trackway_trainer_agent.worker.family_watch import FamilyWatch
from trackway_trainer_agent.worker.host_report import SHARED_MEMORY, filesystem, filesystems
from trackway_trainer_agent.worker.kernel_log import KernelLog
from trackway_trainer_agent.worker.oom_counts import OomCounts
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import HostReport


class HostWatch:
    """Made before the trainer starts; ``follow`` it once it runs, ``finish`` when it has ended."""

    def __init__(self, spec: RankSpec) -> None:
        self._bound_bytes = spec.memory_bytes
        self._kernel_log = KernelLog()
        self._devices = DeviceHealth(_own_devices(spec))
        self._ooms = OomCounts()
        if (counter := oom_counter(os.getpid())) is not None:
            self._ooms.count(counter)
        self._family: FamilyWatch | None = None

    def follow(self, pid: int, kill: Callable[[], None]) -> None:
        """Watch this trainer; ``kill`` it when it goes over its bound."""
        self._family = FamilyWatch(pid, bound_bytes=self._bound_bytes, over=lambda used: kill(), ooms=self._ooms)

    def finish(self) -> None:
        """Look a last time."""
        if self._family is not None:
            self._family.finish()

    @property
    def oom_kills(self) -> int | None:
        """Kills that the actor's cgroup or the trainer's counted meanwhile; ``None`` where nobody counts."""
        return self._ooms.kills

    @property
    def last_oom_kill_at_ms(self) -> int | None:
        """When the last of them was seen to be counted."""
        return self._ooms.last_at_ms

    def report(self, scratch: Path) -> HostReport:
        """What to tell."""
        family = self._family
        # A trainer that was gone before it was looked at: the actor's own.
        seen = family.shared_memory if family is not None else None
        shared_memory = seen or filesystem(SHARED_MEMORY)
        return HostReport(
            memory_bound_bytes=self._bound_bytes,
            killed_over_bound_bytes=family.killed_at_bytes if family is not None else 0,
            filesystems=(*filesystems([scratch]), *([shared_memory] if shared_memory else ())),
            kernel_lines=self._kernel_log.lines(family.pids if family is not None else ()),
            devices=self._devices.states(),
        )


def _own_devices(spec: RankSpec) -> tuple[str, ...]:
    """This rank's share of the node's devices."""
    each = len(spec.visible_devices) // max(1, spec.local_world_size)
    return spec.visible_devices[spec.local_rank * each : (spec.local_rank + 1) * each]
