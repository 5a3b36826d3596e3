"""``python -m trackway_evaluator.worker REQUEST``: one try of one evaluation.

Exit codes: 0 with result.json, 1 with failure.json. Anything else is a crash that could not speak.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from trackway_common.checkpoint.json_codec import Malformed
from trackway_common.errors import CommandRejected
from trackway_common.events import EvaluationFailure

from trackway_evaluator.protocol import (
    WorkFailure,
    WorkFolder,
    WorkProcess,
    WorkRequest,
    held_lock,
    read_record,
    write_record,
)

MAX_TRACEBACK = 8_000
"""Characters, from the end: the frames that matter are the last."""


def main(path: Path) -> int:
    """Run the request at the path; the evaluation's folder is two above it."""
    attempt, folder = path.parent, WorkFolder(path.parent.parent)
    with held_lock(folder):
        write_record(attempt / "process.json", WorkProcess(attempt=int(attempt.name), pid=os.getpid()))
        try:
            request = read_record(WorkRequest, path)
            if request is None:
                raise CommandRejected(f"there is no {path}", reason="CONFIG_INVALID")
            # Imported late, so that a torch that can't be loaded is reported like any failure.
            from trackway_evaluator.worker.evaluate import evaluate

            write_record(attempt / "result.json", evaluate(request, folder))
        except Exception as error:  # noqa: BLE001 - the top of the process: say why before it ends
            write_record(attempt / "failure.json", _failure(error))
            return 1
    return 0


def _failure(error: Exception) -> WorkFailure:
    return WorkFailure(
        failure=_kind(error).value,
        message=f"{type(error).__name__}: {error}"[:2000],
        traceback="".join(traceback.format_exception(error))[-MAX_TRACEBACK:],
    )


def _kind(error: Exception) -> EvaluationFailure:
    if isinstance(error, MemoryError) or _is_torch_memory_error(error):
        return EvaluationFailure.OOM
    if isinstance(error, CommandRejected | Malformed):
        return EvaluationFailure.CONFIG_INVALID
    return EvaluationFailure.CRASH


def _is_torch_memory_error(error: Exception) -> bool:
    """torch has a class of its own for devices, and only a text for the CPU."""
    return type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator: can't allocate memory" in str(error)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
