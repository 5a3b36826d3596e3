"""What a node's own facts add to a rank's end, and where the user's rules stand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.events import Authority, Stance
from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.domain.classify import classify
from trackway_trainer_agent.domain.observations import (
    DeviceHealth,
    Filesystem,
    HostFacts,
    NodeLeaving,
    Observation,
    RankExit,
    RankLost,
    RuleHit,
    SubstrateCause,
)

from tests.unit.trainer_agent.ends import CANCEL, T0, cascade, clean, ended, raised, stopped

FULL_SHM = Filesystem(mount="/dev/shm", free_bytes=0, total_bytes=64 << 20)
KILLED = "Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."
SEGFAULT = "python[4711]: segfault at 0 ip 00007f"
LEAVING = NodeLeaving(node="n1", cause=SubstrateCause.PREEMPTED, text="in 30 s", at_ms=T0, ranks=(0,))


def host(**facts: object) -> HostFacts:
    return HostFacts(**facts)  # type: ignore[arg-type]  # the test's own keywords


def rule(reason: Reason, matched: str = "exit code 42") -> RuleHit:
    return RuleHit(reason=reason, rule="failure_rules[0]", matched=matched, at_ms=T0)


CASES: dict[str, tuple[tuple[Observation, ...], Reason, Authority]] = {
    "killed over its bound": (
        (
            ended(0, signal="SIGKILL", host=host(memory_bound_bytes=1 << 30, killed_over_bound_bytes=1 << 31)),
            cascade(1),
        ),
        Reason.HOST_OOM,
        Authority.HOST,
    ),
    "kernel log names the kill": (
        (ended(0, signal="SIGKILL", host=host(oom_kills=0, kernel_lines=(KILLED,))), cascade(1)),
        Reason.HOST_OOM,
        Authority.HOST,
    ),
    "kernel log names a kill, but it raised": (
        (replace(raised(0), host=host(kernel_lines=(KILLED,))), cascade(1)),
        Reason.USER_CODE_ERROR,
        Authority.ERROR_FILE,
    ),
    "Xid in the kernel log": (
        (ended(0, signal="SIGABRT", host=host(kernel_lines=(XID,))), cascade(1)),
        Reason.DEVICE_HARDWARE,
        Authority.HOST,
    ),
    "segfault in the kernel log": (
        (ended(0, signal="SIGSEGV", host=host(kernel_lines=(SEGFAULT,))), cascade(1)),
        Reason.PROCESS_CRASH,
        Authority.EXIT_STATUS,
    ),
    "device errors": (
        (ended(0, signal="SIGABRT", host=host(devices=(DeviceHealth(device="0", problem="2 errors"),))), cascade(1)),
        Reason.DEVICE_HARDWARE,
        Authority.HOST,
    ),
    "device without errors": (
        (ended(0, signal="SIGABRT", host=host(devices=(DeviceHealth(device="0", problem=""),))), cascade(1)),
        Reason.PROCESS_CRASH,
        Authority.EXIT_STATUS,
    ),
    "bus error on full shared memory": (
        (ended(0, signal="SIGBUS", host=host(filesystems=(FULL_SHM,))), cascade(1)),
        Reason.STORAGE_FULL,
        Authority.HOST,
    ),
    "bus error with room": (
        (
            ended(
                0,
                signal="SIGBUS",
                host=host(filesystems=(Filesystem(mount="/", free_bytes=1 << 40, total_bytes=1 << 41),)),
            ),
        ),
        Reason.PROCESS_CRASH,
        Authority.EXIT_STATUS,
    ),
    "full shared memory beside another failure": (
        (replace(raised(0), host=host(filesystems=(FULL_SHM,))),),
        Reason.USER_CODE_ERROR,
        Authority.ERROR_FILE,
    ),
    "exit code by rule": (
        (ended(0, code=42, rule=rule(Reason.DATA_CORRUPT)), cascade(1)),
        Reason.DATA_CORRUPT,
        Authority.EXIT_STATUS,
    ),
    "line by rule, over an exception": (
        (replace(raised(0), rule=rule(Reason.STORAGE_TRANSIENT, "lost the mount")), cascade(1)),
        Reason.STORAGE_TRANSIENT,
        Authority.LOG_SIGNATURE,
    ),
    "rule over a consequence": (
        (ended(0, code=1, error=cascade(0).error, rule=rule(Reason.DEVICE_HARDWARE, "link down")), cascade(1)),
        Reason.DEVICE_HARDWARE,
        Authority.LOG_SIGNATURE,
    ),
    "rule, but cancelled": (
        (CANCEL, ended(0, code=42, rule=rule(Reason.DATA_CORRUPT)), stopped(1)),
        Reason.CANCELLED_BY_USER,
        Authority.OWN_INTENT,
    ),
    "rule, but it ended well": ((clean(0), clean(1)), Reason.COMPLETED, Authority.EXIT_STATUS),
    "wrapped device OOM": (
        (raised(0, "TrainingFailed", "step 3", chain=("torch.OutOfMemoryError: CUDA out of memory",)), cascade(1)),
        Reason.DEVICE_OOM,
        Authority.ERROR_FILE,
    ),
    "node announced as preempted, program raised": (
        (LEAVING, raised(0, "torch.OutOfMemoryError", "CUDA out of memory"), cascade(1)),
        Reason.PREEMPTED_SPOT,
        Authority.SUBSTRATE,
    ),
    "node announced as preempted, it failed before": (
        (replace(LEAVING, at_ms=T0 + 5_000), raised(0), cascade(1)),
        Reason.USER_CODE_ERROR,
        Authority.ERROR_FILE,
    ),
    "node announced as preempted, another one failed": (
        (replace(LEAVING, node="n2"), raised(0), cascade(1)),
        Reason.USER_CODE_ERROR,
        Authority.ERROR_FILE,
    ),
    "node announced as preempted, its data is bad": (
        (LEAVING, raised(0, trackway_reason="DATA_CORRUPT"), cascade(1)),
        Reason.DATA_CORRUPT,
        Authority.ERROR_FILE,
    ),
    "node announced as preempted, its actor is gone": (
        (LEAVING, RankLost(rank=0, node="n1", cause=SubstrateCause.NODE_DIED, text="", at_ms=T0 + 900), cascade(1)),
        Reason.PREEMPTED_SPOT,
        Authority.SUBSTRATE,
    ),
    "node announced as preempted, others lost it": (
        (LEAVING, cascade(1)),
        Reason.PREEMPTED_SPOT,
        Authority.SUBSTRATE,
    ),
    "node announced as preempted, but cancelled": (
        (LEAVING, CANCEL, stopped(0), stopped(1)),
        Reason.CANCELLED_BY_USER,
        Authority.OWN_INTENT,
    ),
    "killed soon after the cgroup's last kill": (
        (ended(0, signal="SIGKILL", at=60_000, host=host(oom_kills=2, last_oom_kill_at_ms=T0 + 56_000)), cascade(1)),
        Reason.HOST_OOM,
        Authority.HOST,
    ),
    "killed long after the cgroup's last kill": (
        (ended(0, signal="SIGKILL", at=60_000, host=host(oom_kills=2, last_oom_kill_at_ms=T0 + 8_000)), cascade(1)),
        Reason.UNKNOWN_KILL,
        Authority.EXIT_STATUS,
    ),
    "node announced as preempted, all finished": (
        (LEAVING, clean(0), clean(1)),
        Reason.COMPLETED,
        Authority.SUBSTRATE,
    ),
    "actor removed by somebody": (
        (RankLost(rank=0, node="n", cause=SubstrateCause.KILLED_BY_US, text="RAY_KILL", at_ms=T0), cascade(1)),
        Reason.UNKNOWN_KILL,
        Authority.EXIT_STATUS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_weightiest_evidence_decides(name: str):
    seen, reason, authority = CASES[name]
    verdict = classify(2 if len(seen) > 1 else 1, seen)
    assert (verdict.reason, verdict.evidence[0].authority) == (reason, authority)


def stances(*seen: RankExit) -> dict[str, Stance]:
    return {one.source: one.stance for one in classify(len(seen), seen).evidence}


def test_evidence_says_whether_it_is_for_or_against():
    oom_denied = stances(ended(0, signal="SIGKILL", host=host(oom_kills=0, kernel_lines=(KILLED,))), cascade(1))
    assert oom_denied["rank 0 kernel log"] is Stance.SUPPORTS
    assert oom_denied["rank 0 memory cgroup"] is Stance.CONTRADICTS
    assert oom_denied["rank 0 exit status"] is Stance.NEUTRAL
    assert oom_denied["rank 1 error file"] is Stance.NEUTRAL
    two = stances(
        raised(0, "torch.OutOfMemoryError", "CUDA out of memory", at=50), raised(1, "OSError", "[Errno 28] x")
    )
    assert two == {
        "rank 0 error file": Stance.SUPPORTS,
        "rank 0 exit status": Stance.NEUTRAL,
        "rank 1 error file": Stance.CONTRADICTS,
        "rank 1 exit status": Stance.NEUTRAL,
    }


def test_a_kernel_kill_long_before_the_end_says_nothing_of_it():
    early = host(oom_kills=2, last_oom_kill_at_ms=T0 + 8_000)
    verdict = classify(1, (ended(0, signal="SIGKILL", at=60_000, host=early),))
    (counted,) = (one for one in verdict.evidence if one.source == "rank 0 memory cgroup")
    assert counted.stance is Stance.NEUTRAL
    assert counted.excerpt == "oom_kill counted 2 while it ran, the last 52 s before its end; peak 0 MiB"


def test_what_followed_alike_on_many_ranks_is_told_once():
    verdict = classify(40, (ended(0, signal="SIGSEGV", at=10), *(cascade(rank) for rank in range(1, 40))))
    cascades = [
        one for one in verdict.evidence if one.role.value == "CASCADE" and one.authority is Authority.ERROR_FILE
    ]
    assert len(cascades) == 1
    assert cascades[0].excerpt.endswith("The same on ranks 2, 3, 4, 5, 6, 7, 8, 9 ….")
