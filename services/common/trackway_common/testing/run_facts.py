"""Write a run's facts as its services would, at times that a test chooses."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from trackway_common import events as e
from trackway_common.acceptance import partition_scope
from trackway_common.codec import commit_headers, encode_commit
from trackway_common.commit import Commit, Term
from trackway_common.event_log import EventLog
from trackway_common.events import Fact
from trackway_common.ids import attempt_stream, checkpoint_stream, evaluation_stream, root_key, run_stream
from trackway_common.partitioner import partition_of
from trackway_common.topics import FACT_PARTITIONS, topic_of

START = datetime(2026, 11, 20, 2, 0, 0, tzinfo=UTC)
RUN_ID = "0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d01"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def sha(character: str) -> str:
    """A digest that is easy to tell from others."""
    return "sha256:" + character * 64


def run_spec(**changes: object) -> e.RunSpec:
    """The spec of a small reasoning run on two CPU ranks."""
    fields: dict[str, object] = {
        "project": "demo",
        "model_family": "reasoning",
        "owner": "ada",
        "criticality": "experiment",
        "hypothesis": "A byte model learns the shape of Python in two minutes.",
        "seed": 1234,
        "deterministic": True,
        "trigger": e.Trigger(kind="person"),
        "entrypoint": e.Entrypoint(kind=e.EntrypointKind.FUNCTION, argv=("bytes_lm.train:main",)),
        "code": e.CodeRef(requested="examples/bytes-lm", archive_digest=sha("a"), git_commit="f" * 40),
        "runtime": e.RuntimeRef(kind="pool", environment_digest=sha("e"), python_version="3.11.7"),
        "hyperparameters_json": '{"batch_size":16,"steps":120}',
        "config_digest": sha("c"),
        "datasets": (e.DatasetRef(name="stdlib", requested="stdlib", manifest_digest=sha("d"), weight=1.0),),
        "compute": e.ComputeRef(
            compute_class="local-cpu-2x",
            pool="local",
            accelerator_kind="cpu-slot",
            cpus_per_rank=1.0,
            price=e.Price(amount=0.36, currency="EUR", since="2026-01-01"),
        ),
        "topology": e.Topology(
            world_size=2,
            strategy="ddp",
            precision="float32",
            checkpoint=e.CheckpointPolicy(keep_last=3, in_flight=e.InFlightPolicy.SKIP),
        ),
        "evaluation_pack": e.EvaluationPackRef(name="bytes-lm", requested="bytes-lm", digest=sha("b")),
        "max_attempts": 50,
        "spec_digest": sha("1"),
    }
    return e.RunSpec(**(fields | changes))  # type: ignore[arg-type]  # the test's own keywords


def checkpoint_ref(step: int, epoch: int, slot: int, run_id: str = RUN_ID) -> e.CheckpointRef:
    """A committed checkpoint."""
    digest = sha(f"{slot % 16:x}")
    return e.CheckpointRef(
        run_id=run_id, step=step, epoch=epoch, nonce=f"n{step:03d}", manifest_digest=digest, slot=slot
    )


class RunFacts:
    """Commits of one run in the order of their making. Time moves only by ``after``."""

    def __init__(self, run_id: str = RUN_ID, start: datetime = START) -> None:
        self.run_id = run_id
        self.now = start
        self.commits: list[Commit] = []
        self._heads: dict[str, int] = {}
        self._terms: dict[str, Term] = {}
        self._partition = partition_of(run_id.encode(), FACT_PARTITIONS)

    def after(self, seconds: float) -> RunFacts:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        return self

    def run(self, *facts: Fact) -> RunFacts:
        """The scheduler commits facts of the run, claiming its partition when it is the first."""
        if run_stream(self.run_id) not in self._terms:
            self.claim(partition_scope(self._partition), run_stream(self.run_id), Term(0, 1))
        return self.commit(run_stream(self.run_id), *facts)

    def attempt(self, number: int, *facts: Fact) -> RunFacts:
        """The agent commits facts of an attempt, claiming it when they are the first."""
        stream = attempt_stream(self.run_id, number)
        if stream not in self._terms:
            self.claim(stream, stream, Term(number, 1))
        return self.commit(stream, *facts)

    def checkpoint(self, *facts: Fact) -> RunFacts:
        """A checkpointer mirrors slots of the commit log, one commit a slot."""
        for fact in facts:
            self.commit(checkpoint_stream(self.run_id), fact)
        return self

    def evaluation(self, *facts: Fact) -> RunFacts:
        """The evaluator commits facts, claiming the run's evaluations when they are the first."""
        stream = evaluation_stream(self.run_id)
        if stream not in self._terms:
            self.claim(stream, stream, Term(0, 1))
        return self.commit(stream, *facts)

    def claim(self, scope: str, stream: str, term: Term) -> RunFacts:
        """A writer claims a scope; its next commits on the stream carry the term."""
        self._terms[stream] = term
        claimed = e.OwnershipClaimed(endpoint="127.0.0.1:7001")
        self.commits.append(self._commit(scope, 0, term, (claimed,)))
        return self

    def commit(self, stream: str, *facts: Fact) -> RunFacts:
        """Append one commit of the stream's present owner."""
        first = self._heads.get(stream, 0) + 1
        self._heads[stream] = first + len(facts) - 1
        self.commits.append(self._commit(stream, first, self._terms.get(stream, Term(0, 0)), facts))
        return self

    @property
    def facts_only(self) -> list[Commit]:
        """Commits without the claims: what readers accept."""
        return [c for c in self.commits if c.first_seq > 0]

    def _commit(self, stream: str, first_seq: int, term: Term, facts: tuple[Fact, ...]) -> Commit:
        commit_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.run_id}/{len(self.commits)}"))
        return Commit(
            commit_id=commit_id,
            stream=stream,
            first_seq=first_seq,
            term=term,
            writer_id="writer-1",
            command_id=f"command-{len(self.commits)}",
            causation_id="",
            correlation_id=self.run_id,
            tenant="default",
            actor="ada",
            occurred_at=self.now,
            traceparent=TRACEPARENT,
            facts=facts,
        )


async def append_commits(log: EventLog, commits: list[Commit], *, run_id: str = RUN_ID) -> None:
    """Append commits of one run to their topics."""
    for commit in commits:
        claims_partition = commit.stream.startswith("partitions/")
        topic = topic_of(run_stream(run_id) if claims_partition else commit.stream)
        key = run_id.encode() if claims_partition else root_key(commit.stream)
        partition = partition_of(key, await log.partition_count(topic))
        await log.append(topic, partition, key, encode_commit(commit), commit_headers(commit))
