"""The labelled corpus. A label says what failures.md asks for, never what came out."""

from __future__ import annotations

from tests.faults.corpus.expected import (
    combinations,
    hangs,
    inputs,
    intent,
    memory,
    processes,
    surroundings,
    user_code,
)
from tests.faults.corpus.label import Label

LABELS: tuple[Label, ...] = (
    *user_code.labels(),
    *memory.labels(),
    *processes.labels(),
    *hangs.labels(),
    *inputs.labels(),
    *surroundings.labels(),
    *intent.labels(),
    *combinations.labels(),
)
NOT_INJECTED: dict[str, str] = {
    "a real CUDA out of memory, Xid or ECC error": "needs a GPU; what torch raises then is raised instead",
    "SIGBUS by a full /dev/shm of the machine": "everything on the machine shares it; a private one is filled instead",
    "preemption by the scheduler": "the scheduler has no priorities yet, so it preempts nobody",
    "drain for maintenance": "Ray refuses to drain a busy node for any reason but preemption",
    "cancellation by an administrator": "no call of the API tells an administrator's cancellation from a user's",
    "early stopping": "no rule stops a run early yet",
    "quota revoked, budget exhausted": "quotas and budgets of projects do not exist yet",
    "admission infeasible": "such a run is refused at submission; no attempt begins",
    "torn network between two machines": "one machine; connections are cut between its processes instead",
}
"""Failures that do not happen here, and why; they are not counted."""

LED_TO_A_CHANGE: dict[str, str] = {
    "handled-exception": "came out as USER_CODE_ERROR though its rank ended with code 0; the rule was corrected",
}
"""Held-out faults whose measured result changed the classifier: no longer unseen."""
