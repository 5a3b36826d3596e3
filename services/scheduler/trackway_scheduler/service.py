"""The scheduler as a process: server, ports, run until cancelled."""

from __future__ import annotations

from trackway_common.clock import SystemClock
from trackway_common.event_log import EventLog
from trackway_common.ids import uuid7
from trackway_common.object_store import BlobStore, open_store
from trackway_common.rpc import serve

from trackway_scheduler.adapters.catalogue_file import read_catalogue
from trackway_scheduler.adapters.probe import probe
from trackway_scheduler.domain.leases import LeaseTerms
from trackway_scheduler.entrypoints.servables import servables
from trackway_scheduler.settings import SchedulerSettings
from trackway_scheduler.shell.draws import Draws
from trackway_scheduler.shell.leadership import LeadershipTerms
from trackway_scheduler.shell.opening import Opening
from trackway_scheduler.shell.scheduler import Makings, Scheduler


async def run_scheduler(settings: SchedulerSettings, event_log: EventLog) -> None:
    """Serve until cancelled.

    Raises:
        CommandRejected: the compute catalogue or the store can't be used.
        Unavailable: the address can't be bound.
    """
    catalogue = read_catalogue(settings.compute_catalogue)
    blobs = BlobStore(open_store(settings.store.url))
    opening = Opening()
    server = await serve(settings.rpc, servables(opening))
    makings = Makings(
        event_log=event_log,
        blobs=blobs,
        catalogue=catalogue,
        clock=SystemClock(),
        ids=uuid7,
        draws=Draws(),
        prober=probe,
        lease_terms=LeaseTerms(
            probe_after_s=settings.lease.probe_after_s, write_off_after_s=settings.lease.write_off_after_s
        ),
        leadership_terms=LeadershipTerms(takeover_after_s=settings.takeover_after_s),
        instance=settings.instance or uuid7(),
        endpoint=server.address,
        opening=opening,
        on_active=server.set_serving,
    )
    try:
        await Scheduler(makings).run()
    finally:
        await server.stop()
