"""Faults that the program brings about by itself."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.faults.corpus.injection import Injection
from tests.faults.corpus.scene import Scene

PROGRAMS = Path(__file__).parent.parent / "training"
PLAIN_SCRIPT = {"script": "plain.py"}
TORCH = {"function": "torch_alone:main"}
TORCH_SCRIPT = {"script": "torch_alone.py"}
SDK = {"function": "with_sdk:main"}
STALLED = {"limits": {"stall_s": 3.0, "first_step_s": 60.0}}
WHOLE_SHELL = '"$0" plain.py; exit $?'
"""The shell stays, and reports its child's death as a code."""
OWN_SHM = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" plain.py'


def behind_shell() -> dict[str, Any]:
    """A command whose shell waits for the program."""
    return {"command": ["sh", "-c", WHOLE_SHELL, sys.executable]}


def does_not_parse(scene: Scene) -> Mapping[str, Any]:
    """A copy of the code with a module that is no Python."""
    code = scene.meeting / "code"
    shutil.copytree(PROGRAMS, code, ignore=shutil.ignore_patterns("__pycache__"))
    (code / "plain.py").write_text("def main(:\n    pass\n")
    return {"code": {"path": str(code)}}


INJECTIONS: dict[str, Injection] = {
    # user code
    "exception-at-import": Injection(entry={"function": "raises_at_import:main"}),
    "syntax-error": Injection(before=does_not_parse),
    "dependency-missing": Injection(entry={"function": "needs_a_dependency:main"}),
    "exception-at-start": Injection(kind="start", entry=SDK),
    "exception-at-save": Injection(kind="save", entry=SDK),
    "exception-in-loader-worker": Injection(kind="worker-raises", entry=SDK),
    "exception-in-script": Injection(kind="raise", entry=PLAIN_SCRIPT),
    "exception-by-torchelastic": Injection(kind="recorded", entry=TORCH_SCRIPT),
    "exception-group": Injection(kind="group"),
    "recursion-without-end": Injection(kind="recurse"),
    "silent-exit": Injection(kind="leave"),
    "error-file-of-garbage": Injection(kind="garbage"),
    "message-of-50-megabytes": Injection(kind="shout"),
    "flood-of-lines": Injection(kind="flood"),
    "exception-in-step": Injection(kind="raise", entry=SDK),
    # device memory
    "device-oom-in-step": Injection(
        kind="device-oom",
        entry=SDK,
        spec={"tunable": {"micro_batch": "batch", "accumulation": "accumulation"}},
        before=lambda scene: {"hyperparameters": {"batch": 8, "accumulation": 1}},
    ),
    "device-oom-in-script": Injection(kind="device-oom", entry=TORCH_SCRIPT),
    "device-oom-wrapped": Injection(kind="wrapped-oom", entry=TORCH),
    "cublas-alloc-failed": Injection(kind="cublas"),
    "device-oom-in-native-code": Injection(kind="native-oom"),
    "address-space-limit": Injection(kind="address-space"),
    # crashes
    "null-pointer": Injection(kind="null-pointer"),
    "native-stack-overflow": Injection(kind="stack-overflow"),
    "abort": Injection(kind="abort"),
    "bus-error": Injection(kind="bus-error"),
    "illegal-instruction": Injection(kind="illegal-instruction"),
    "crash-behind-shell": Injection(kind="null-pointer", entry=behind_shell()),
    # hangs
    "loader-hangs": Injection(kind="loader-hangs", entry=SDK, spec=STALLED),
    "deadlock": Injection(kind="deadlock", entry=SDK, spec=STALLED),
    "infinite-loop": Injection(kind="infinite-loop", entry=SDK, spec=STALLED),
    "rank-misses-collective": Injection(kind="miss", entry=SDK, spec=STALLED),
    "collective-gives-up": Injection(kind="never-meet", entry=TORCH),
    "watchdog-aborts": Injection(kind="watchdog"),
    # numeric
    "loss-is-nan": Injection(kind="nan", entry=SDK),
    "guard-raises": Injection(kind="guard"),
    "anomaly-detected": Injection(kind="anomaly", entry=TORCH),
    # data
    "bad-row": Injection(kind="bad-row"),
    "undecodable-text": Injection(kind="undecodable"),
    "truncated-parquet": Injection(kind="parquet"),
    "truncated-gzip": Injection(kind="gzip"),
    "schema-drift-by-contract": Injection(kind="columns"),
    "schema-drift-by-arrow": Injection(kind="cast"),
    "state-dict-mismatch": Injection(kind="mismatch", entry=TORCH),
    # configuration
    "function-absent": Injection(entry={"function": "plain:nothing"}),
    "script-absent": Injection(entry={"script": "nothing.py"}),
    "unknown-argument": Injection(kind="arguments", entry={"script": "plain.py", "args": ["--stepz", "3"]}),
    "command-absent": Injection(entry={"command": ["./nothing.sh"]}),
    "config-refused-by-model": Injection(kind="bad-shape"),
    # storage, network, devices
    "shared-memory-full": Injection(
        kind="fill-shm", entry={"command": ["unshare", "-m", "sh", "-c", OWN_SHM, sys.executable]}
    ),
    "object-store-503": Injection(kind="busy-store"),
    "rendezvous-port-taken": Injection(kind="port-taken", entry=TORCH),
    "rendezvous-times-out": Injection(kind="nobody-joins", entry=TORCH),
    "rendezvous-not-listening": Injection(kind="nobody-listens", entry=TORCH),
    "connections-cut": Injection(kind="cut", entry=TORCH),
    "device-ecc-error": Injection(kind="ecc"),
    # intent
    "deadline-passed": Injection(spec={"limits": {"deadline": 12}}),
    "wall-time-over": Injection(spec={"limits": {"wall_time_s": 4.0}}),
    # combinations
    "device-oom-and-resets": Injection(kind="oom-among-others", entry=TORCH),
    "reset-before-its-cause": Injection(kind="cut-then-raise", entry=TORCH),
    "misleading-lines": Injection(kind="mislead"),
    "crash-while-stopped": Injection(kind="crash-when-told"),
    "handled-exception": Injection(kind="handle"),
}
