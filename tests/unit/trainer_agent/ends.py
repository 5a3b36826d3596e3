"""Ends of attempts as they are seen, with the reason and the rank to blame."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.domain.observations import (
    ClusterLost,
    ErrorSeen,
    ErrorSource,
    Frame,
    HostFacts,
    LaunchProblem,
    LaunchStage,
    Observation,
    RankExit,
    RankLost,
    RankSilent,
    StopOrdered,
    SubstrateCause,
)

T0 = 1_700_000_000_000
CASCADE_MESSAGES = (
    ("torch.distributed.DistBackendError", "NCCL error: remote process exited or there was a network error"),
    ("torch.distributed.DistNetworkError", "The client socket has failed to connect to any network address"),
    ("RuntimeError", "[../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4242"),
    ("RuntimeError", "[gloo/transport/tcp/pair.cc:598] Connection reset by peer"),
    ("ConnectionResetError", "[Errno 104] Connection reset by peer"),
    ("BrokenPipeError", "[Errno 32] Broken pipe"),
    ("RuntimeError", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)"),
)


def clean(rank: int, at: int = 900) -> RankExit:
    return RankExit(rank=rank, node="n1", exit_code=0, signal=None, ended_at_ms=T0 + at, monotonic_ns=at * 1_000_000)


def ended(
    rank: int,
    *,
    code: int | None = None,
    signal: str | None = None,
    at: int = 100,
    oom_kills: int | None = None,
    **more: object,
) -> RankExit:
    more = {"host": HostFacts(oom_kills=oom_kills), **more}
    return replace(clean(rank, at), exit_code=code, signal=signal, last_step=7, **more)


def error(kind: str = "ValueError", message: str = "bad shape", at: int = 99, **more: object) -> ErrorSeen:
    made = ErrorSeen(
        source=ErrorSource.PROCESS,
        exception_type=kind,
        message=message,
        frames=(Frame(file="/code/train.py", line=40, function="step"),),
        step=7,
        monotonic_ns=at * 1_000_000,
        at_ms=T0 + at,
    )
    return replace(made, **more)


def raised(rank: int, kind: str = "ValueError", message: str = "bad shape", at: int = 100, **more: object) -> RankExit:
    return ended(rank, code=1, at=at, error=error(kind, message, at - 1, **more))


def cascade(rank: int, which: int = 2, at: int = 200) -> RankExit:
    return raised(rank, *CASCADE_MESSAGES[which], at=at)


def stopped(rank: int, at: int = 500) -> RankExit:
    return ended(rank, signal="SIGKILL", at=at, stop_sent_at_ms=T0 + 400)


def lost(cause: SubstrateCause, text: str = "") -> RankLost:
    return RankLost(rank=1, node="n2", cause=cause, text=text, at_ms=T0 + 900)


def problem(stage: LaunchStage, message: str, rank: int | None = 0) -> LaunchProblem:
    return LaunchProblem(stage=stage, message=message, at_ms=T0, rank=rank)


CANCEL = StopOrdered(reason=Reason.CANCELLED_BY_USER, why="cancelled by ada", at_ms=T0)
PRINTED = error("ValueError", "bad shape", source=ErrorSource.PRINTED, monotonic_ns=None)
LOADER_KILLED = error("RuntimeError", "DataLoader worker (pid 9) is killed by signal: Killed.")
LOADER_GONE = error("RuntimeError", "DataLoader worker (pid(s) 9) exited unexpectedly")
PRINTED_OOM = replace(PRINTED, exception_type="torch.OutOfMemoryError", message="CUDA out of memory.")
WATCHDOG = ("Watchdog caught collective operation timeout: WorkNCCL",)
NO_SCRIPT = "python: can't open file '/code/train.py': [Errno 2] No such file or directory"
NO_ARGUMENT = "train.py: error: unrecognized arguments: --stepz 3"
CASES: dict[str, tuple[tuple[Observation, ...], Reason, int | None]] = {
    "all ranks finished": ((clean(0), clean(1)), Reason.COMPLETED, None),
    "all finished, one after an error that it handled": (
        (replace(clean(0), error=PRINTED), clean(1)),
        Reason.COMPLETED,
        None,
    ),
    "bare SIGKILL": ((ended(1, signal="SIGKILL"), cascade(0)), Reason.UNKNOWN_KILL, 1),
    "SIGKILL of a shell's child": ((ended(1, code=137), cascade(0)), Reason.UNKNOWN_KILL, 1),
    "SIGKILL, cgroup counted none": ((ended(1, signal="SIGKILL", oom_kills=0), cascade(0)), Reason.UNKNOWN_KILL, 1),
    "SIGKILL, cgroup counted one": ((ended(1, signal="SIGKILL", oom_kills=1), cascade(0)), Reason.HOST_OOM, 1),
    "loader worker killed by the kernel": ((ended(1, code=1, oom_kills=1, error=LOADER_KILLED),), Reason.HOST_OOM, 1),
    "loader worker gone, cgroup counted one": ((ended(1, code=1, oom_kills=1, error=LOADER_GONE),), Reason.HOST_OOM, 1),
    "loader worker killed by nobody known": ((ended(1, code=1, error=LOADER_KILLED),), Reason.UNKNOWN_KILL, 1),
    "SIGTERM from outside": ((ended(1, signal="SIGTERM"), cascade(0)), Reason.UNKNOWN_KILL, 1),
    **{
        f"{name} of a rank": ((ended(1, signal=name), cascade(0)), Reason.PROCESS_CRASH, 1)
        for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGFPE")
    },
    "exception of one rank": ((raised(1), cascade(0)), Reason.USER_CODE_ERROR, 1),
    "the same exception on both ranks": ((raised(1, at=90), raised(0)), Reason.USER_CODE_ERROR, 1),
    "printed traceback only": ((ended(1, code=1, error=PRINTED), cascade(0)), Reason.USER_CODE_ERROR, 1),
    "exit code only": ((ended(1, code=3), cascade(0)), Reason.USER_CODE_ERROR, 1),
    "program not found by a shell": ((ended(0, code=127),), Reason.CONFIG_INVALID, 0),
    "launcher gone, status unknown": ((ended(0),), Reason.UNKNOWN, 0),
    "error names data": ((raised(1, trackway_reason="DATA_CORRUPT"), cascade(0)), Reason.DATA_CORRUPT, 1),
    "error names configuration": ((raised(1, trackway_reason="CONFIG_INVALID"),), Reason.CONFIG_INVALID, 1),
    "error names a bad checkpoint": ((raised(0, trackway_reason="CHECKPOINT_CORRUPT"),), Reason.CHECKPOINT_CORRUPT, 0),
    "error names another shape": (
        (raised(0, trackway_reason="CHECKPOINT_INCOMPATIBLE"),),
        Reason.CHECKPOINT_INCOMPATIBLE,
        0,
    ),
    "error names nonsense": ((raised(0, trackway_reason="BAD_LUCK"),), Reason.USER_CODE_ERROR, 0),
    "device memory": ((raised(1, "torch.OutOfMemoryError", "CUDA out of memory."), cascade(0)), Reason.DEVICE_OOM, 1),
    "device memory, printed": ((ended(1, code=1, error=PRINTED_OOM),), Reason.DEVICE_OOM, 1),
    "device memory, then abort": (
        (ended(1, signal="SIGABRT", stderr_tail=("terminate called", "  what():  CUDA error: out of memory")),),
        Reason.DEVICE_OOM,
        1,
    ),
    "Python's own MemoryError": ((raised(0, "MemoryError", ""),), Reason.HOST_OOM, 0),
    "disk full": ((raised(0, "OSError", "[Errno 28] No space left on device"),), Reason.STORAGE_FULL, 0),
    "SIGBUS on a full shared memory": (
        (ended(0, signal="SIGBUS", stderr_tail=("write: No space left on device",)),),
        Reason.STORAGE_FULL,
        0,
    ),
    "kill after an unrelated traceback": ((ended(1, signal="SIGKILL", error=PRINTED),), Reason.UNKNOWN_KILL, 1),
    "abort by the watchdog": ((ended(0, signal="SIGABRT", stderr_tail=WATCHDOG),), Reason.COLLECTIVE_TIMEOUT, 0),
    "watchdog on one rank, crash before it on another": (
        (ended(0, signal="SIGABRT", at=900, stderr_tail=WATCHDOG), ended(1, signal="SIGSEGV", at=100)),
        Reason.PROCESS_CRASH,
        1,
    ),
    "only consequences": ((cascade(0, at=300), cascade(1, at=200)), Reason.NETWORK_FABRIC, 1),
    "cancelled": ((CANCEL, stopped(0), stopped(1)), Reason.CANCELLED_BY_USER, None),
    "cancelled, and a rank crashed meanwhile": (
        (CANCEL, ended(0, signal="SIGSEGV"), stopped(1)),
        Reason.CANCELLED_BY_USER,
        None,
    ),
    "survivor stopped by us": ((ended(1, signal="SIGKILL"), stopped(0)), Reason.UNKNOWN_KILL, 1),
    "survivor stopped by us had raised before": (
        (ended(0, signal="SIGKILL", at=500, error=error(at=50), stop_sent_at_ms=T0 + 400), ended(1, code=1)),
        Reason.USER_CODE_ERROR,
        0,
    ),
    "survivor raised because it was stopped": (
        (
            ended(0, code=1, at=500, error=error("KeyboardInterrupt", "", at=450), stop_sent_at_ms=T0 + 400),
            ended(1, signal="SIGSEGV", at=100),
        ),
        Reason.PROCESS_CRASH,
        1,
    ),
    "node died": ((lost(SubstrateCause.NODE_DIED, "NODE_DIED"), raised(0, at=50)), Reason.NODE_LOST, 1),
    "preempted, with a collateral error": (
        (lost(SubstrateCause.PREEMPTED), raised(0, at=50)),
        Reason.PREEMPTED_SPOT,
        1,
    ),
    "drained": ((lost(SubstrateCause.DRAINED),), Reason.NODE_DRAIN, 1),
    "Ray's monitor killed the actor": (
        (lost(SubstrateCause.OUT_OF_MEMORY, "low on memory"), cascade(0)),
        Reason.HOST_OOM,
        1,
    ),
    "actor vanished": ((lost(SubstrateCause.UNEXPLAINED, "End of file"), cascade(0)), Reason.UNKNOWN_KILL, 1),
    "another cluster answers": (
        (ClusterLost(expected_id="a", found_id="b", silent_s=3.0, at_ms=T0), RankSilent(rank=0, at_ms=T0)),
        Reason.NODE_LOST,
        None,
    ),
    "no resources": ((problem(LaunchStage.PLACE, "no placement within 60 s", None),), Reason.LAUNCH_FAILED, None),
    "archive does not match": ((problem(LaunchStage.CODE, "digest differs"), cascade(1)), Reason.LAUNCH_FAILED, 0),
    "program missing": ((problem(LaunchStage.EXECUTE, "no train.py"),), Reason.CONFIG_INVALID, 0),
    "script missing": ((ended(0, code=2, stderr_tail=(NO_SCRIPT,)),), Reason.CONFIG_INVALID, 0),
    "unknown argument": ((ended(0, code=2, stderr_tail=("usage: train.py", NO_ARGUMENT)),), Reason.CONFIG_INVALID, 0),
    "store away at launch": ((problem(LaunchStage.INPUTS, "Unavailable: EIO"),), Reason.STORAGE_TRANSIENT, 0),
    "store full at launch": (
        (problem(LaunchStage.CODE, "OSError: [Errno 28] No space left on device"),),
        Reason.STORAGE_FULL,
        0,
    ),
    "data does not match": (
        (problem(LaunchStage.INPUTS, "CorruptLog: blob sha256:00 is damaged in the store"),),
        Reason.DATA_CORRUPT,
        0,
    ),
    "data is gone": ((problem(LaunchStage.INPUTS, "NotFound: a.txt does not exist"),), Reason.DATA_CORRUPT, 0),
    "no rights to the data": (
        (problem(LaunchStage.INPUTS, "PermissionError: [Errno 13] Permission denied"),),
        Reason.LAUNCH_FAILED,
        0,
    ),
    "checkpoint does not match": (
        (problem(LaunchStage.RESUME, "CommandRejected: m.json is not what was committed: its digest differs"),),
        Reason.CHECKPOINT_CORRUPT,
        0,
    ),
    "no rights to restore a checkpoint": (
        (problem(LaunchStage.RESUME, "PermissionError: [Errno 13] Permission denied"),),
        Reason.LAUNCH_FAILED,
        0,
    ),
    "one rank finished, the other failed": ((clean(0), raised(1)), Reason.USER_CODE_ERROR, 1),
    "one rank finished, the other silent": ((clean(0), RankSilent(rank=1, at_ms=T0)), Reason.UNKNOWN, None),
    "nothing seen": ((), Reason.UNKNOWN, None),
}
