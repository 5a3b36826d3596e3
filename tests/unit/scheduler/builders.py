"""Facts and commands of a small run, for the scheduler's tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trackway_common.commit import UnknownFact
from trackway_common.decider import fold
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    AttemptPlaced,
    CheckpointPolicy,
    CheckpointRef,
    CodeRef,
    ComputeRef,
    DatasetRef,
    Entrypoint,
    EntrypointKind,
    EvaluationPackRef,
    Fact,
    InFlightPolicy,
    PoolObserved,
    Price,
    RankPlacement,
    RunQueued,
    RunSpec,
    RunSubmitted,
    RuntimeRef,
    TerminationReason,
    Topology,
    Trigger,
)
from trackway_common.ids import run_stream
from trackway_scheduler.domain.commands import AttemptEnd, Command, RecordAttemptEnded, SubmitRun
from trackway_scheduler.domain.decider import SCHEDULER
from trackway_scheduler.domain.ladder import Room
from trackway_scheduler.domain.state import RunState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN = "01930000-0000-7000-8000-000000000001"
DIGEST = "sha256:" + "1" * 64
PACK = EvaluationPackRef(name="tiny", requested="tiny", digest="sha256:" + "2" * 64)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def run_spec(**changes) -> RunSpec:
    spec = RunSpec(
        project="demo",
        model_family="reasoning",
        owner="ada",
        trigger=Trigger(kind="person"),
        entrypoint=Entrypoint(kind=EntrypointKind.FUNCTION, argv=("m.train:main",)),
        code=CodeRef(requested=".", archive_digest=DIGEST),
        runtime=RuntimeRef(kind="pool", environment_digest=DIGEST, python_version="3.11.7"),
        datasets=(DatasetRef(name="digits", requested="digits", manifest_digest=DIGEST, weight=1.0),),
        compute=ComputeRef(compute_class="local-cpu-2x", pool="local", cpus_per_rank=1.0, price=Price()),
        topology=Topology(
            world_size=2,
            strategy="ddp",
            checkpoint=CheckpointPolicy(keep_last=3, in_flight=InFlightPolicy.WAIT),
        ),
        evaluation_pack=PACK,
        max_attempts=50,
        retry_ceiling=8,
        evaluation_model="m.model:build",
    )
    return replace(spec, **changes)


def submitted(spec: RunSpec | None = None) -> tuple[Fact, ...]:
    spec = spec or run_spec()
    return (
        RunSubmitted(run_id=RUN, spec=spec, request_digest="body", submitted_at=NOW),
        RunQueued(attempt=1, queued_at=NOW, not_before=NOW),
    )


def submit(spec: RunSpec | None = None, request_digest: str = "body") -> SubmitRun:
    return SubmitRun(run_id=RUN, spec=spec or run_spec(), request_digest=request_digest, at=NOW)


def placed(attempt: int = 1, agent_id: str = "agent-1") -> AttemptPlaced:
    return AttemptPlaced(attempt=attempt, epoch=attempt, pool="local", agent_id=agent_id, ranks=ranks(), placed_at=NOW)


def ranks(count: int = 2) -> tuple[RankPlacement, ...]:
    return tuple(RankPlacement(rank=i, bundle=i, cpus=1.0) for i in range(count))


def running(spec: RunSpec | None = None) -> tuple[Fact, ...]:
    return (*submitted(spec), placed())


def checkpoint(step: int, slot: int | None = None) -> CheckpointRef:
    return CheckpointRef(
        run_id=RUN,
        step=step,
        epoch=1,
        nonce=f"n{step}",
        manifest_digest=f"sha256:{step:064x}",
        slot=slot if slot is not None else step,
    )


def ended(
    reason: TerminationReason,
    attempt: int = 1,
    *,
    at: datetime = NOW,
    step: int | None = None,
    cause: str = "",
    jitter: float = 0.5,
    blamed_node: str | None = None,
    room: Room | None = None,
) -> RecordAttemptEnded:
    last = None if step is None else checkpoint(step)
    end = AttemptEnd(
        attempt=attempt,
        reason=reason,
        cause=cause,
        last_committed=last,
        jitter=jitter,
        at=at,
        blamed_node=blamed_node,
        room=room or Room(),
    )
    return RecordAttemptEnded(end=end)


def pool(name: str = "local", cpus: float = 4.0, accelerators: int = 0) -> PoolObserved:
    return PoolObserved(
        pool=name,
        agent_id="agent-1",
        cluster_id="c1",
        cpus=cpus,
        accelerators=accelerators,
        memory_bytes=8 << 30,
        environment_digest=DIGEST,
        python_version="3.11.7",
        observed_at=NOW,
    )


class Given:
    """given(facts).when(command).then(facts), with the same fold as the shell's."""

    def __init__(self, *facts: Fact, stream: str = run_stream(RUN)) -> None:
        self.stream = stream
        self.facts = facts
        self.made: tuple[Fact, ...] = ()
        self.refused: CommandRejected | None = None

    @property
    def state(self):
        return fold(SCHEDULER, self.stream, (*self.facts, *self.made))

    @property
    def run(self) -> RunState:
        assert isinstance(self.state, RunState)
        return self.state

    def when(self, command: Command) -> Given:
        try:
            self.made = SCHEDULER.decide(self.state, command)
        except CommandRejected as refused:
            self.refused = refused
        return self

    def then(self, *facts: Fact) -> Given:
        assert self.refused is None, self.refused
        assert self.made == facts
        return self

    def then_kinds(self, *kinds: type) -> Given:
        assert self.refused is None, self.refused
        assert tuple(type(fact) for fact in self.made) == kinds
        return self

    def and_when(self, command: Command) -> Given:
        return Given(*self.facts, *self.made, stream=self.stream).when(command)


def unknown(number: int = 9999) -> UnknownFact:
    return UnknownFact(number=number, raw=b"")
