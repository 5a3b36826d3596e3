"""Stands between a rank's actor and its trainer, so that nothing outlives the actor and no exit status is lost.

Run by path with ``python -I -S``; imports only the standard library, and little of it, to be up in a few ms.
It leaves its parent at once: Ray kills the children of an actor that ends, the launcher before it could do its work.
It leads a session of its own, adopts every orphan below it (``PR_SET_CHILD_SUBREAPER``), starts the trainer and
then obeys one-letter orders on the control pipe. The end of that pipe means that the actor is gone.

Usage: launcher.py CONTROL_FD STATUS_FD WORKING_FOLDER PROGRAM [ARGUMENT …]
Orders on CONTROL_FD: ``T`` terminates the trainer's process group, ``S`` asks it for its stacks (SIGUSR2),
``K`` or the end of the pipe kills every descendant.
Lines on STATUS_FD: ``started PID``, or ``failed ERRNO``; then ``ended WAIT_STATUS PEAK_RSS_KIB`` as soon as the trainer
ended, and ``gone`` once none of its descendants is left.
"""

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IGNORED_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
# What the interpreter or we changed; ignored signals would stay ignored through exec.
CHANGED_SIGNALS = (*IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


def main() -> int:
    """Run one trainer to its end and leave no descendant."""
    if os.fork() != 0:
        return 0
    os.setsid()
    control, status = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    wakeup = _wakeup_pipe()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    trainer = _start(status, sys.argv[3], sys.argv[4:])
    if trainer is None:
        return 127
    # The trainer holds the output pipes now; a copy here would keep them open after its end.
    _point_at_null(0, 1, 2)
    ended = _obey_until_end(control, wakeup, trainer)
    if ended is not None:
        _tell(status, b"ended %d %d\n" % ended)
    _kill_descendants()
    if ended is None:
        return 1
    _tell(status, b"gone\n")
    return 0


def _tell(status: int, line: bytes) -> None:
    try:
        os.write(status, line)
    except BrokenPipeError:
        pass  # The actor is gone; what is left below must die all the same.


def _wakeup_pipe() -> int:
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    # The group's Ctrl-C and hang-up are the actor's business; it says so on the control pipe.
    for ignored in IGNORED_SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    return readable


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _start(status: int, folder: str, argv: list[str]) -> int | None:
    """Execute the trainer; its failure to execute comes back through a pipe that closes on success."""
    failure, report = os.pipe()
    trainer = os.fork()
    if trainer == 0:
        _become(folder, argv, report)
    os.close(report)
    error = os.read(failure, 16)
    if not error:
        os.write(status, b"started %d\n" % trainer)
        return trainer
    os.waitpid(trainer, 0)
    os.write(status, b"failed %s\n" % error)
    return None


def _become(folder: str, argv: list[str], report: int) -> None:
    """Turn the forked child into the trainer; a single-threaded parent makes the fork safe."""
    try:
        # Launcher killed: the trainer goes too. The creating thread is the launcher's only one.
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setpgid(0, 0)
        for number in CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(folder)
        # By this it tells itself from what it starts.
        os.environ["TRACKWAY_TRAINER_PID"] = str(os.getpid())
        os.execvp(argv[0], argv)  # noqa: S606 - the user's program, as argv: a shell would change it
    except OSError as error:
        os.write(report, b"%d" % (error.errno or 0))
    finally:
        os._exit(127)


def _point_at_null(*descriptors: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(null, descriptor)
    os.close(null)


def _obey_until_end(control: int, wakeup: int, trainer: int) -> tuple[int, int] | None:
    """Wait for the trainer's end; ``None`` when the actor was gone before."""
    while True:
        readable, _, _ = select.select([control, wakeup], [], [])
        if wakeup in readable:
            os.read(wakeup, 4096)
            ended = _reap(trainer)
            if ended is not None:
                return ended
        if control in readable and not _obey(os.read(control, 1), trainer):
            return None


def _obey(order: bytes, trainer: int) -> bool:
    """Carry out one order; false at the end of the pipe."""
    # The trainer is not reaped yet, so the number is still its own.
    match order:
        case b"K":
            _signal_descendants()
        case b"T":
            os.killpg(trainer, signal.SIGTERM)
        case b"S":
            os.kill(trainer, signal.SIGUSR2)
    return order != b""


def _reap(trainer: int) -> tuple[int, int] | None:
    """Collect what has ended, adopted orphans too; the trainer's wait status and peak memory if it did."""
    ended = None
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if pid == trainer:
            ended = (status, usage.ru_maxrss)


def _kill_descendants() -> None:
    """Kill until nothing is left below; orphans arrive here as their parents die."""
    while True:
        _signal_descendants()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _signal_descendants() -> None:
    for pid in _descendants():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs 10 ms of start-up
        if entry.isdigit():
            children.setdefault(_parent_of(entry), []).append(int(entry))
    found, open_parents = [], [os.getpid()]
    while open_parents:
        below = children.get(open_parents.pop(), [])
        found.extend(below)
        open_parents.extend(below)
    return found


def _parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - as above
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return -1


if __name__ == "__main__":
    sys.exit(main())
