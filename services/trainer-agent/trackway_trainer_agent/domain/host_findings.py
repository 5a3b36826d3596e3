"""What a node's own facts say about a rank's end: kernel kills, memory bounds, room, devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trackway_common.events import Authority, CausalRole
from trackway_common.events import TerminationReason as Reason

from trackway_trainer_agent.domain.exit_status import signal_of
from trackway_trainer_agent.domain.findings import Finding, fingerprint
from trackway_trainer_agent.domain.observations import Filesystem, RankExit
from trackway_trainer_agent.domain.signatures import of_line

FULL_BYTES = 1 << 20
"""A filesystem with less room is full: a page and its metadata need some."""
KILL_BEFORE_END_MS = 5_000
"""A kernel kill that ends a rank ends it by then; torch's DataLoader looks after its workers every 5 s."""
_KERNEL_KILL = re.compile(
    r"Out of memory: Killed process|Memory cgroup out of memory|oom-kill:|oom_reaper", re.IGNORECASE
)
_LOADER_KILLED = ("killed by signal", "exited unexpectedly")
"""How torch's DataLoader tells that a worker died: by its signal handler, or by the queue that stays empty."""
_MIB = 20


def host_findings(seen: RankExit) -> Iterator[Finding]:
    """Nothing about a rank that ended well."""
    if seen.exit_code == 0 and seen.signal is None:
        return
    yield from _over_bound(seen)
    yield from _cgroup(seen)
    yield from _kernel_log(seen)
    yield from _devices(seen)
    yield from _room(seen)


def _over_bound(seen: RankExit) -> Iterator[Finding]:
    used, bound = seen.host.killed_over_bound_bytes, seen.host.memory_bound_bytes
    if not used:
        return
    said = f"it used {used >> _MIB} MiB, and its bound is {bound >> _MIB} MiB"
    yield _finding(
        seen,
        source="memory bound",
        excerpt=f"killed by its actor: {said}",
        reason=Reason.HOST_OOM,
        confidence=0.98,
        cause=f"Rank {seen.rank} on {seen.node} was killed for memory: {said}.",
        what="bound",
    )


def _cgroup(seen: RankExit) -> Iterator[Finding]:
    kills = seen.host.oom_kills
    if kills is None:
        return
    apart_ms = _apart_ms(seen)
    confirmed = kills > 0 and was_killed(seen) and apart_ms <= KILL_BEFORE_END_MS
    peak = f"peak {seen.peak_memory_bytes >> _MIB} MiB"
    when = f", the last {apart_ms / 1000:.0f} s before its end" if apart_ms > KILL_BEFORE_END_MS else ""
    finding = _finding(
        seen,
        source="memory cgroup",
        excerpt=f"oom_kill counted {kills} while it ran{when}; {peak}" + ("" if kills else "; speaks against HOST_OOM"),
        reason=Reason.HOST_OOM if confirmed else None,
        confidence=0.95,
        cause=f"The kernel killed rank {seen.rank} on {seen.node} because its memory cgroup was full ({peak}).",
        what="cgroup",
        against=frozenset() if kills else frozenset({Reason.HOST_OOM}),
    )
    yield finding


def _apart_ms(seen: RankExit) -> int:
    """From the last kill to the end; 0 where nobody knows when it was."""
    killed_at_ms = seen.host.last_oom_kill_at_ms
    return 0 if killed_at_ms is None else seen.ended_at_ms - killed_at_ms


def _kernel_log(seen: RankExit) -> Iterator[Finding]:
    for line in seen.host.kernel_lines:
        signature = of_line(line)
        if _KERNEL_KILL.search(line) and was_killed(seen):
            reason, cause = (
                Reason.HOST_OOM,
                f"The kernel killed rank {seen.rank} on {seen.node} for memory: {line[:200]}.",
            )
        elif signature is not None and signature.reason is Reason.DEVICE_HARDWARE:
            reason, cause = Reason.DEVICE_HARDWARE, f"A device of {seen.node} failed: {line[:200]}."
        else:
            yield _finding(seen, source="kernel log", excerpt=line)
            continue
        yield _finding(
            seen, source="kernel log", excerpt=line, reason=reason, confidence=0.95, cause=cause, what="kernel"
        )


def _devices(seen: RankExit) -> Iterator[Finding]:
    for device in seen.host.devices:
        if device.problem:
            yield _finding(
                seen,
                source=f"device {device.device}",
                excerpt=device.problem,
                reason=Reason.DEVICE_HARDWARE,
                confidence=0.85,
                cause=f"Device {device.device} of {seen.node} failed under rank {seen.rank}: {device.problem}.",
                what="device",
            )


def _room(seen: RankExit) -> Iterator[Finding]:
    """A full filesystem alone explains nothing but a bus error: writing to a mapped page that finds no room."""
    for filesystem in seen.host.filesystems:
        if filesystem.free_bytes >= FULL_BYTES:
            continue
        broke = signal_of(seen.exit_code, seen.signal) == "SIGBUS" or "bus error" in _said(seen)
        said = _fill(filesystem)
        yield _finding(
            seen,
            source=f"filesystem {filesystem.mount}",
            excerpt=said,
            reason=Reason.STORAGE_FULL if broke else None,
            confidence=0.9,
            cause=f"Rank {seen.rank} on {seen.node} wrote to a full filesystem: {said}.",
            what="full",
            backs=frozenset({Reason.STORAGE_FULL}),
        )


def was_killed(seen: RankExit) -> bool:
    """A kernel kill hits the program or a child; a child's death shows as the loader's error."""
    status_says = signal_of(seen.exit_code, seen.signal) == "SIGKILL"
    return status_says or any(words in _said(seen) for words in _LOADER_KILLED)


def _said(seen: RankExit) -> str:
    return seen.error.message.lower() if seen.error is not None else ""


def _fill(filesystem: Filesystem) -> str:
    total = filesystem.total_bytes >> _MIB
    return f"{filesystem.mount} has {filesystem.free_bytes >> 10} KiB of {total} MiB free"


def _finding(
    seen: RankExit,
    *,
    source: str,
    excerpt: str,
    reason: Reason | None = None,
    confidence: float = 0.0,
    cause: str = "",
    what: str = "",
    backs: frozenset[Reason] = frozenset(),
    against: frozenset[Reason] = frozenset(),
) -> Finding:
    return Finding(
        role=CausalRole.INITIATING if reason else CausalRole.UNKNOWN,
        authority=Authority.HOST,
        source=f"rank {seen.rank} {source}",
        excerpt=excerpt,
        at_ms=seen.ended_at_ms,
        reason=reason,
        suggests=reason,
        backs=backs,
        against=against,
        confidence=confidence,
        cause=cause,
        fingerprint=fingerprint(reason.value, what) if reason else "",
        rank=seen.rank,
        node=seen.node,
        monotonic_ns=seen.monotonic_ns,
    )
