"""The evaluator put together: log, fold, processes, server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from trackway_common.clock import SystemClock
from trackway_common.event_log import EventLog
from trackway_common.ids import uuid7
from trackway_common.object_store import BlobStore, open_store
from trackway_common.request_sender import RequestSender
from trackway_common.rpc import RpcServer, serve
from trackway_common.service import beat
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import EVALUATIONS

from trackway_evaluator.adapters.evidence_store import EvidenceStore
from trackway_evaluator.adapters.tries import Tries, child_environment
from trackway_evaluator.domain.decider import DECIDER
from trackway_evaluator.entrypoints.grpc_api import EvaluationApi, servable
from trackway_evaluator.settings import EvaluatorSettings
from trackway_evaluator.shell.evaluation_shell import EvaluationShell
from trackway_evaluator.shell.examiner import Examiner
from trackway_evaluator.shell.order_desk import OrderDesk
from trackway_evaluator.shell.patience import Owner, PatientOwner
from trackway_evaluator.shell.reading import Reading

SERVICE = "evaluator"


async def run_evaluator(settings: EvaluatorSettings, event_log: EventLog, environment: Mapping[str, str]) -> None:
    """Serve until cancelled; evaluation processes end with it.

    Args:
        environment: this process's, of which evaluation processes inherit a part.
    Raises:
        Unavailable: the address can't be bound.
    """
    instance, reading = settings.instance or uuid7(), Reading()
    server = await serve(settings.rpc, [servable(EvaluationApi(reading.states))])
    owner = _owner(event_log, instance, server.address)
    reading.follow(owner)
    desk = OrderDesk(event_log, _shell(settings, owner, environment), owner.caught_up, settings.evaluator.parallel)
    sender = RequestSender(event_log, f"{SERVICE}/{instance}", SystemClock(), uuid7)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(owner.run(), name="fold evaluations")
            tasks.create_task(desk.run(), name="take orders")
            tasks.create_task(beat(sender, SystemClock(), SERVICE, instance, server.address), name="beat")
            tasks.create_task(_say_ready(server, owner, desk), name="health")
    finally:
        await server.stop()


def _owner(event_log: EventLog, instance: str, address: str) -> Owner:
    return StreamOwner(
        event_log=event_log,
        topic=EVALUATIONS,
        decider=DECIDER,
        writer=Writer(writer_id=f"{SERVICE}/{instance}", endpoint=address),
        clock=SystemClock(),
        ids=uuid7,
    )


def _shell(settings: EvaluatorSettings, owner: Owner, environment: Mapping[str, str]) -> EvaluationShell:
    return EvaluationShell(
        log_owner=PatientOwner(owner=owner, clock=SystemClock()),
        tries=Tries(
            root=settings.state / "evaluator",
            store_url=settings.store.url,
            environment=child_environment(environment),
        ),
        examiner=Examiner(store=EvidenceStore(BlobStore(open_store(settings.store.url))), clock=SystemClock()),
    )


async def _say_ready(server: RpcServer, owner: Owner, desk: OrderDesk) -> None:
    await owner.caught_up.wait()
    await desk.caught_up.wait()
    await server.set_serving(True)
