"""First on a trainer's path: a program that knows nothing of Trackway says why it died, and where it hangs.

Runs in the trainer's own interpreter, whatever it is: standard library only, and little of it. Only the trainer itself
is concerned, not what it starts; its own ``sitecustomize``, if it has one, runs after this.
"""

import os
import sys


def _install(pid: str, error_file: str, writer: str) -> None:
    before = sys.excepthook

    def record(kind, error, trace):  # type: ignore[no-untyped-def]  # the types of its interpreter
        if str(os.getpid()) == pid:
            try:
                _load(writer).write_error_file(_path(error_file), error, None)
            except Exception as failed:  # noqa: BLE001 - whatever it is, the program's own error is the one to tell
                sys.stderr.write(f"trackway: the error file could not be written: {failed!r}\n")
        before(kind, error, trace)

    sys.excepthook = record


def _answer_stacks(file: str) -> None:
    import faulthandler
    import signal

    # Stays open: a handler can't open a file.
    faulthandler.register(signal.SIGUSR2, file=open(file, "a"), all_threads=True)  # noqa: PTH123, SIM115
    with open(f"{file}.ready", "w") as ready:  # noqa: PTH123
        ready.write(f"{os.getpid()} {os.readlink('/proc/self/exe')}")  # noqa: PTH115


def _load(path: str):  # type: ignore[no-untyped-def]  # a module that its interpreter may not have installed
    import importlib.util

    spec = importlib.util.spec_from_file_location("trackway_error_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _path(name: str):  # type: ignore[no-untyped-def]  # pathlib is not imported before it is needed
    from pathlib import Path

    return Path(name)


def _run_next() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])  # noqa: PTH100
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if os.environ.get("TRACKWAY_TRAINER_PID") == str(os.getpid()):
    try:
        _install(os.environ["TRACKWAY_TRAINER_PID"], os.environ["TRACKWAY_ERROR_FILE"], os.environ["TRACKWAY_WRITER"])
        _answer_stacks(os.environ["TRACKWAY_STACKS"])
    except (KeyError, OSError, ImportError) as missing:
        sys.stderr.write(f"trackway: this program's end can only be read from its output: {missing!r}\n")
_run_next()
