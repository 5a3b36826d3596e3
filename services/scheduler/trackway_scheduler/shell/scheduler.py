"""The scheduler put together: one fold of its own topic, three of others', heartbeats, leadership, passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trackway_common.clock import Clock
from trackway_common.event_log import EventLog
from trackway_common.fact_reader import Judged
from trackway_common.ids import IdSource
from trackway_common.object_store import BlobStore
from trackway_common.request_sender import RequestSender
from trackway_common.service import beat
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import RUNS

from trackway_scheduler.domain.catalogue import Catalogue
from trackway_scheduler.domain.decider import SCHEDULER
from trackway_scheduler.domain.leases import LeaseTerms
from trackway_scheduler.shell.draws import Draws
from trackway_scheduler.shell.fleet import Fleet
from trackway_scheduler.shell.journal import Journal
from trackway_scheduler.shell.leadership import Leadership, LeadershipTerms
from trackway_scheduler.shell.lease_watch import LeaseWatch, Prober
from trackway_scheduler.shell.opening import Opening, Parts
from trackway_scheduler.shell.outside_view import OutsideView
from trackway_scheduler.shell.pool_watch import PoolWatch
from trackway_scheduler.shell.queue import QueueBoard
from trackway_scheduler.shell.reactor import Reactor, ReactorParts
from trackway_scheduler.shell.records import Owner, Records
from trackway_scheduler.shell.registration import DatasetDesk
from trackway_scheduler.shell.submission import SubmissionDesk

SERVICE = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Makings:
    """What a scheduler is made of: ports, values, and its own address."""

    event_log: EventLog
    blobs: BlobStore
    catalogue: Catalogue
    clock: Clock
    ids: IdSource
    draws: Draws
    prober: Prober
    lease_terms: LeaseTerms
    leadership_terms: LeadershipTerms
    instance: str
    endpoint: str
    opening: Opening
    on_active: Callable[[bool], Awaitable[None]]
    """Called when it becomes active, and when it stands by again."""


class Scheduler:
    """One scheduler process, active or standing by."""

    def __init__(self, makings: Makings) -> None:
        self._makings = makings
        # New with every start: claims of an earlier process of the same name must not look like this one's.
        self._writer = Writer(writer_id=f"{SERVICE}/{makings.instance}/{makings.ids()}", endpoint=makings.endpoint)
        self._sender = RequestSender(makings.event_log, self._writer.writer_id, makings.clock, makings.ids)
        self._owner: Owner = StreamOwner(
            event_log=makings.event_log,
            topic=RUNS,
            decider=SCHEDULER,
            writer=self._writer,
            clock=makings.clock,
            ids=makings.ids,
            on_judged=self._take,
        )
        self._fleet = Fleet(makings.event_log, makings.clock, self._writer.writer_id, self._wake)
        self._outside = OutsideView(makings.event_log, self._take_outside)
        self._journal = Journal()
        self._leadership = self._made_leadership()
        self._records = Records(self._owner, self._leadership.require_active)
        self._leases = LeaseWatch(self._fleet, makings.clock, makings.lease_terms, makings.prober)
        self._board = QueueBoard()
        self._reactor = self._made_reactor()

    @property
    def is_active(self) -> bool:
        """True while it may append."""
        return self._leadership.active

    async def run(self) -> None:
        """Fold, lead or stand by, until cancelled."""
        makings = self._makings
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._owner.run(), name="fold runs")
            tasks.create_task(self._outside.run(), name="fold what others wrote")
            tasks.create_task(self._fleet.run(), name="hear heartbeats")
            tasks.create_task(
                beat(self._sender, makings.clock, SERVICE, makings.instance, makings.endpoint), name="beat"
            )
            await self._outside.caught_up()
            await self._owner.caught_up.wait()
            makings.opening.open(self._parts())
            tasks.create_task(self._leadership.beat(), name="beat as the active one")
            tasks.create_task(self._leadership.run(), name="lead or stand by")
            tasks.create_task(self._leases.run(), name="probe silent agents")
            tasks.create_task(self._reactor.run(), name="react")

    def _take(self, judged: Judged) -> None:
        self._records.take(judged)
        self._leadership.take(judged)
        kind, _, run_id = judged.commit.stream.partition("/")
        if judged.accepted and kind == "runs":
            self._journal.add(run_id, judged)
        self._wake()

    def _take_outside(self, run_id: str, judged: Judged) -> None:
        self._journal.add(run_id, judged)
        self._wake()

    def _wake(self) -> None:
        self._reactor.waker.wake()

    def _made_leadership(self) -> Leadership:
        return Leadership(
            owner=self._owner,
            fleet=self._fleet,
            sender=self._sender,
            writer=self._writer,
            clock=self._makings.clock,
            terms=self._makings.leadership_terms,
            chance=self._makings.draws.fraction,
            on_change=self._makings.on_active,
        )

    def _made_reactor(self) -> Reactor:
        makings = self._makings
        parts = ReactorParts(
            records=self._records,
            outside=self._outside,
            pools=PoolWatch(self._records, self._fleet, makings.catalogue, makings.clock, makings.ids),
            leases=self._leases,
            board=self._board,
        )
        return Reactor(parts, makings.clock, makings.draws.fraction, lambda: self.is_active)

    def _parts(self) -> Parts:
        makings = self._makings
        submissions = SubmissionDesk(self._records, makings.blobs, makings.catalogue, makings.clock, self._wake)
        return Parts(
            records=self._records,
            outside=self._outside,
            fleet=self._fleet,
            board=self._board,
            journal=self._journal,
            submissions=submissions,
            datasets=DatasetDesk(self._records, makings.blobs, makings.clock),
            blobs=makings.blobs,
            clock=makings.clock,
            draws=makings.draws,
        )
