"""Variables that nobody reads, told by name: a misspelt setting would have no effect without a word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from trackway_common.settings import LogSettings

PREFIX = "TRACKWAY_"
ELSEWHERE = frozenset(
    {
        # Settings of single services; one environment may serve them all.
        "AGENT",
        "CHECKPOINTER",
        "CLICKHOUSE",
        "COMPUTE_CATALOGUE",
        "EVALUATOR",
        "GENERATION",
        "HISTORY",
        "LEASE",
        "RAY",
        "TAKEOVER_AFTER_S",
        "WATCH",
        # The client, the training SDK without a stack, and the local stack.
        "ENDPOINT",
        "KAFKA_LIBS",
        "LOCAL_DIR",
        "STACK_CHILD",
        "STACK_ID",
        # What a trainer is given: a service may be started from within one.
        "ATTEMPT",
        "ATTEMPT_TOKEN",
        "CHECKPOINT_DIR",
        "CONFIG",
        "DATASETS",
        "DETERMINISTIC",
        "EPOCH",
        "ERROR_FILE",
        "IN_FLIGHT",
        "NON_FINITE_LOSS",
        "RANK_SOCKET",
        "RESUME_FROM",
        "RESUME_MANIFEST_DIGEST",
        "RESUME_STEP",
        "RUN_ID",
        "SEED",
        "STACKS",
        "TRAINER_PID",
        "WRITER",
    }
)
"""What other parts of Trackway read: variables without the prefix, and blocks of variables by their first word."""


def unknown_variables(kind: type[LogSettings], names: Iterable[str]) -> dict[str, str]:
    """Return those ``TRACKWAY_*`` that no part of Trackway reads, with the closest known one; empty where none is.

    What is wrong inside a block, such as ``TRACKWAY_KAFKA__BOOTSTRP``, is refused when the settings are read.
    """
    known = sorted({*_own(kind), *ELSEWHERE})
    return {
        name: _closest(name.upper().removeprefix(PREFIX), known)
        for name in sorted(names)
        if name.upper().startswith(PREFIX) and not _is_known(kind, name.upper().removeprefix(PREFIX))
    }


def _is_known(kind: type[LogSettings], name: str) -> bool:
    first, nested, _ = name.partition("__")
    if first in ELSEWHERE:
        return True
    field = kind.model_fields.get(first.lower())
    return field is not None and (not nested or _block(field) is not None)


def _own(kind: type[LogSettings]) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        block = _block(field)
        below = (f"__{inner}" for inner in block.model_fields) if block else ("",)
        yield from (f"{name}{inner}".upper() for inner in below)


def _block(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _closest(name: str, known: list[str]) -> str:
    found = difflib.get_close_matches(name, known, n=1)
    return f"{PREFIX}{found[0]}" if found else ""
