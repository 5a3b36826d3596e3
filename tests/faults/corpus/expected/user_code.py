"""The user's program is wrong: nothing but a person can help."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import Label

GROUP = "user code"
SAYINGS = (
    ("exception-at-import", "The user's module raises while it is imported.", 1),
    ("syntax-error", "The user's module does not parse.", 1),
    ("dependency-missing", "The user's module imports a distribution that is not installed.", 1),
    ("exception-at-start", "Building the model raises, inside the session, before the first step.", 1),
    ("exception-at-save", "What a checkpoint asks for its state raises, inside checkpoint().", 1),
    ("exception-in-loader-worker", "A worker process of torch's DataLoader raises; torch raises it again.", 1),
    ("exception-in-script", "A script without the SDK raises: only its printed traceback says so.", 1),
    ("exception-by-torchelastic", "torch's @record writes its own error file, as under torchrun.", 1),
    ("exception-group", "Two tasks of an asyncio.TaskGroup raise: an ExceptionGroup ends the program.", 1),
    ("recursion-without-end", "A function calls itself for ever: RecursionError.", 1),
    ("silent-exit", "The program exits with code 3 and prints nothing.", 1),
    ("error-file-of-garbage", "The program leaves bytes that are no JSON in the error file and exits with 1.", 1),
    ("message-of-50-megabytes", "An exception's message has 50 MB.", 1),
    ("flood-of-lines", "The program prints as fast as it can for two seconds, then raises.", 1),
)


def labels() -> Iterator[Label]:
    """Every label of the group."""
    for name, does, ranks in SAYINGS:
        yield Label(name=name, group=GROUP, does=does, reason=Reason.USER_CODE_ERROR, move=NextMove.STOP, ranks=ranks)
    yield Label(
        name="exception-in-step",
        group=GROUP,
        does="Rank 1 of 2 raises in a step; rank 0's collective finds its peer gone.",
        reason=Reason.USER_CODE_ERROR,
        move=NextMove.STOP,
        ranks=2,
        blamed=1,
    )
