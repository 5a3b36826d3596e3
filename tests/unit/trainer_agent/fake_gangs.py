"""Gangs without a cluster: keeps the contract of tests/contract/test_gangs.py; ranks do what a test says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trackway_common.errors import CommandRejected, Unavailable
from trackway_trainer_agent.domain.observations import SubstrateCause
from trackway_trainer_agent.gangs import ClusterView, GangName, GangRequest, NotGranted, RankGone
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import (
    DrainBatch,
    ErrorRecord,
    LaunchFailed,
    Numbered,
    Overdue,
    PhasesMeasured,
    RankDescription,
    RankPhase,
    Record,
    StackDump,
    TrainerExited,
    TrainerStarted,
)

FACTS_ONLY_AFTER_READ = ("StepMetrics", "LogLine", "ResourceSample")
_pids = itertools.count(50_000)


@dataclass
class FakeRank:
    """One rank; a test tells it what to report."""

    rank: int
    node: str = "node-1"
    spec: RankSpec | None = None
    phase: RankPhase = RankPhase.IDLE
    pid: int = 0
    last_step: int = 0
    stop_requested: bool = False
    obeys: bool = True
    """Ends when it is told to stop; else only a kill ends it."""
    gone: RankGone | None = None
    overdue: Overdue | None = None
    stacks: str = ""
    drains: int = 0
    """How often it was asked."""
    phases: PhasesMeasured | None = None
    """What its session last said of its time."""
    told: int = 0
    """Records so far, also those that were read and forgotten."""
    records: list[Numbered] = field(default_factory=list)

    def tell(self, record: Record) -> None:
        """Report something."""
        self.told += 1
        self.records.append(Numbered(number=self.told, record=record))

    def run(self) -> None:
        """The program was executed."""
        self.phase, self.pid = RankPhase.RUNNING, next(_pids)
        self.tell(TrainerStarted(pid=self.pid, argv=self.spec.entrypoint.argv, device="cpu", at_ms=1))

    def exit(
        self,
        code: int | None = None,
        *,
        signal: str | None = None,
        error: ErrorRecord | None = None,
        saving: bool = False,
        stderr_tail: tuple[str, ...] = (),
        at_ms: int = 0,
        monotonic_ns: int = 0,
    ) -> None:
        """The program ended; with saves in flight the rank is not over yet."""
        self.tell(
            TrainerExited(
                exit_code=code,
                signal=signal,
                error=error,
                stderr_tail=stderr_tail,
                last_step=self.last_step,
                peak_memory_bytes=1 << 20,
                oom_kills=0,
                stop_requested=self.stop_requested,
                stopped_at_ms=0 if self.stop_requested else None,
                started_at_ms=0,
                ended_at_ms=at_ms,
                monotonic_ns=monotonic_ns,
                phases=self.phases,
            )
        )
        self.phase = RankPhase.SAVING if saving else RankPhase.ENDED

    def die(self, cause: SubstrateCause = SubstrateCause.UNEXPLAINED, text: str = "End of file") -> None:
        """The actor is gone."""
        self.gone = RankGone(self.rank, cause, text)


Program = Callable[[FakeRank], None]


def plain_programs(rank: FakeRank) -> None:
    """What a few well-known programs do."""
    match rank.spec.entrypoint.argv[0]:
        case "true" | "false" as name:
            rank.run()
            rank.exit(0 if name == "true" else 1)
        case "sleep":
            rank.run()
        case other:
            rank.tell(LaunchFailed(stage="execute", message=f"No such file or directory: {other!r}", at_ms=1))
            rank.phase = RankPhase.ENDED


class FakeGangs:
    """A cluster in this process."""

    def __init__(self, *, cpus: float = 4.0, program: Program = plain_programs) -> None:
        self.cpus = cpus
        self.cluster_id = "cluster-1"
        self.reachable = True
        self.leaving: tuple[str, ...] = ()
        self.program = program
        self.made: list[GangName] = []
        self._gangs: dict[GangName, list[FakeRank]] = {}

    def rank(self, gang: GangName, rank: int) -> FakeRank:
        """The rank itself, for a test to play with."""
        return self._gangs[gang][rank]

    @property
    def names(self) -> set[GangName]:
        """Gangs that stand."""
        return set(self._gangs)

    def restart(self) -> None:
        """The head is started anew: nothing is there any more."""
        self._gangs.clear()
        self.cluster_id += "-again"

    async def cluster(self) -> ClusterView:
        self._check()
        return ClusterView(
            cluster_id=self.cluster_id,
            cpus=self.cpus,
            accelerators=0,
            memory_bytes=1 << 34,
            nodes=("node-1",),
            largest_node_memory_bytes=1 << 34,
            leaving=self.leaving,
        )

    async def existing(self) -> Mapping[GangName, frozenset[int]]:
        self._check()
        return {name: frozenset(r.rank for r in ranks if not r.gone) for name, ranks in self._gangs.items()}

    async def create(self, request: GangRequest) -> tuple[RankDescription, ...]:
        self._check()
        await self.remove(request.name)
        if sum(bundle.cpus for bundle in request.bundles) > self.cpus:
            raise NotGranted(f"{request.bundles} were not granted within {request.wait_s} s")
        self.made.append(request.name)
        self._gangs[request.name] = [FakeRank(rank) for rank in range(len(request.bundles))]
        return tuple(_description(rank) for rank in self._gangs[request.name])

    async def renew(self, gang: GangName, rank: int) -> RankDescription:
        found = self._rank(gang, rank)
        if found.spec is not None:
            if found.phase is not RankPhase.ENDED:
                raise CommandRejected("its attempt is not over", reason="NOT_OVER")
            self._gangs[gang][rank] = found = FakeRank(rank)
        return _description(found)

    async def start(self, gang: GangName, rank: int, spec: RankSpec) -> None:
        found = self._rank(gang, rank)
        if found.spec is not None and found.spec != spec:
            raise CommandRejected("this actor runs something else", reason="ALREADY_STARTED")
        if found.spec is None:
            found.spec = spec
            self.program(found)

    async def drain(self, gang: GangName, rank: int, after: int) -> DrainBatch:
        found = self._rank(gang, rank)
        found.drains += 1
        new = tuple(item for item in found.records if item.number > after)
        found.records = [
            item
            for item in found.records
            if item.number > after or type(item.record).__name__ not in FACTS_ONLY_AFTER_READ
        ]
        return DrainBatch(
            records=new,
            cursor=new[-1].number if new else after,
            more=False,
            phase=found.phase,
            last_step=found.last_step,
            dropped_metrics=0,
            dropped_logs=0,
            at_ms=5,
            overdue=found.overdue if found.phase is RankPhase.RUNNING else None,
            phases=found.phases,
        )

    async def stacks(self, gang: GangName, rank: int) -> StackDump:
        found = self._rank(gang, rank)
        return StackDump(source="faulthandler" if found.stacks else "none", text=found.stacks)

    async def stop(self, gang: GangName, rank: int, grace_s: float) -> None:
        found = self._rank(gang, rank)
        found.stop_requested = True
        if found.phase is RankPhase.RUNNING and found.obeys:
            found.exit(signal="SIGTERM")

    async def kill(self, gang: GangName, rank: int) -> None:
        found = self._rank(gang, rank)
        found.stop_requested = True
        if found.phase is RankPhase.RUNNING:
            found.exit(signal="SIGKILL")

    async def remove(self, gang: GangName) -> None:
        self._check()
        self._gangs.pop(gang, None)

    def _rank(self, gang: GangName, rank: int) -> FakeRank:
        self._check()
        if gang not in self._gangs:
            raise RankGone(rank, SubstrateCause.UNEXPLAINED, "no living actor has the rank's name")
        found = self._gangs[gang][rank]
        if found.gone is not None:
            raise found.gone
        return found

    def _check(self) -> None:
        if not self.reachable:
            raise Unavailable("the cluster's head does not answer")


def _description(rank: FakeRank) -> RankDescription:
    return RankDescription(
        node=rank.node,
        host="host-1",
        address="127.0.0.1",
        free_port=29_500,
        actor_pid=40_000 + rank.rank,
        python="python",
        python_version="3.11.7",
        devices=(),
        cpus=4,
    )
