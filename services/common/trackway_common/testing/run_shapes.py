"""Runs whose attempts differ in what they run with."""

from __future__ import annotations

from dataclasses import replace

from trackway_common import events as e
from trackway_common.attempt_shape import declared_shape
from trackway_common.canonical import digest_bytes
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RunFacts, run_spec
from trackway_common.testing.run_steps import decided, ended, placed, started, submitted

HALVED = b'{"accumulation":2,"batch_size":8,"steps":120}'
CHANGES = (
    e.Change(field="hyperparameters.batch_size", before="16", after="8", why="the same batch in two passes"),
    e.Change(field="compute", before="local-cpu-2x", after="local-cpu-4x", why="the next class that `compute` lists"),
)


def out_of_memory() -> RunFacts:
    """Its first attempt ran out of memory; the second has half the micro-batch and a larger, dearer class."""
    spec = run_spec(evaluation_pack=e.EvaluationPackRef())
    facts = started(placed(submitted(RunFacts(), spec), 1), 1)
    ended(facts.after(9.0), 1, reason=Reason.DEVICE_OOM, first_step=1, last_step=7)
    decided(facts, 1, e.NextMove.RETRY, Reason.DEVICE_OOM, ledger="DEVICE_OOM", budget=3)
    facts.run(e.RunQueued(attempt=2, queued_at=facts.now, not_before=facts.now))
    dearer = e.Price(amount=0.72, currency="USD", since="2026-02-01")
    compute = replace(spec.compute, compute_class="local-cpu-4x", preemptible=True, price=dearer)
    shape = replace(
        declared_shape(spec),
        hyperparameters_json=HALVED.decode(),
        config_digest=digest_bytes(HALVED),
        compute=compute,
        world_size=2,
    )
    started(placed(facts, 2, changes=CHANGES, shape=shape), 2)
    return ended(facts.after(20.0), 2, reason=Reason.COMPLETED, evidence=(), first_step=1, last_step=120)
