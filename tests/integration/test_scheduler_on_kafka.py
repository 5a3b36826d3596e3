"""Real scheduler processes on a real broker: death, takeover, pauses, poison; judged by reading the log."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from trackway_common.clock import SystemClock
from trackway_common.commit import Term
from trackway_common.errors import Unavailable
from trackway_common.events import RunCancelled
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7
from trackway_common.topics import ATTEMPTS, CHECKPOINTS, COMMANDS, EVALUATIONS, RUNS
from trackway_proto.v1 import blob_service_pb2, pool_service_pb2
from trackway_proto.v1 import run_service_pb2 as pb
from trackway_proto.v1.blob_service_pb2_grpc import BlobServiceStub
from trackway_proto.v1.pool_service_pb2_grpc import PoolServiceStub
from trackway_proto.v1.run_service_pb2_grpc import RunServiceStub

from tests.integration.scheduler_harness import AGENT, SPEC, Hands, SchedulerProcess, wait_for
from tests.support.facts import accepted_commits, check_no_gap_no_repeat
from tests.support.stack import Stack, running_stack


@dataclass
class Place:
    """A broker, a folder for blobs, and the schedulers started on them."""

    bootstrap: str
    folder: Path
    started: list[SchedulerProcess]

    def scheduler(self, name: str) -> SchedulerProcess:
        process = SchedulerProcess(self.bootstrap, self.folder, name).start()
        self.started.append(process)
        return process


@pytest.fixture(scope="module")
def stack(tmp_path_factory) -> Iterator[Stack]:
    yield from running_stack(tmp_path_factory.mktemp("scheduler-broker"), only=frozenset({"kafka"}))


@pytest.fixture
def broker(stack) -> str:
    return stack.kafka


@pytest.fixture
def place(broker, tmp_path) -> Iterator[Place]:
    made = Place(broker, tmp_path, [])
    stopping = threading.Event()
    hands = Hands(broker)

    def beat() -> None:
        while not stopping.wait(1.0):
            with suppress(Unavailable):  # tests kill the broker
                hands.beat()

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield made
    finally:
        stopping.set()
        beating.join()
        for process in made.started:
            process.stop()


@contextmanager
def channel_to(process: SchedulerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(process.endpoint) as channel:
        yield channel


def store_code(process: SchedulerProcess) -> str:
    with channel_to(process) as channel:
        chunks = iter([blob_service_pb2.PutBlobRequest(chunk=b"code")])
        return BlobServiceStub(channel).PutBlob(chunks, timeout=10).digest


def submit(process: SchedulerProcess, code: str, run_id: str = "") -> str:
    request = pb.SubmitRunRequest(request_id=run_id or uuid7(), config=SPEC.encode(), code_archive_digest=code)
    with channel_to(process) as channel:
        return RunServiceStub(channel).SubmitRun(request, timeout=20).run_id


def get(process: SchedulerProcess, run_id: str) -> pb.Run:
    with channel_to(process) as channel:
        return RunServiceStub(channel).GetRun(pb.GetRunRequest(name=run_id), timeout=10)


def sees_pool(process: SchedulerProcess) -> bool:
    with channel_to(process) as channel:
        try:
            pools = PoolServiceStub(channel).ListPools(pool_service_pb2.ListPoolsRequest(), timeout=5).pools
        except grpc.RpcError:
            return False
    return any(pool.name == f"pools/{AGENT.pool}" and pool.reachable for pool in pools)


def is_in(process: SchedulerProcess, run_id: str, phase: str) -> bool:
    try:
        return (
            pb.Run.DESCRIPTOR.fields_by_name["phase"].enum_type.values_by_name[f"RUN_PHASE_{phase}"].number
            == get(process, run_id).phase
        )
    except grpc.RpcError:
        return False


def facts_of(place: Place, run_id: str) -> list[str]:
    commits = [commit for commit in accepted_commits(place.bootstrap) if commit.stream == f"runs/{run_id}"]
    return [type(fact).__name__ for commit in commits for fact in commit.facts]


def test_a_killed_scheduler_loses_no_fact_and_goes_on_where_it_was(place):
    one = place.scheduler("one")
    wait_for(lambda: one.serves() and sees_pool(one))
    code = store_code(one)
    told = [submit(one, code) for _ in range(3)]
    wait_for(lambda: is_in(one, told[0], "RUNNING"))
    one.kill()
    Hands(place.bootstrap).end_attempt(told[0], 1, Reason.PROCESS_CRASH)
    again = place.scheduler("one")
    wait_for(again.serves)
    wait_for(lambda: get(again, told[0]).attempt == 2)
    for run_id in told:
        assert get(again, run_id).run_id == run_id
        assert submit(again, code, run_id) == run_id
    commits = accepted_commits(place.bootstrap)
    check_no_gap_no_repeat(commits)
    assert facts_of(place, told[0])[:6] == [
        "RunSubmitted", "RunQueued", "AttemptPlaced", "RetryDecided", "RunQueued", "AttemptPlaced",
    ]  # fmt: skip


def test_a_standby_takes_over_and_a_paused_leader_writes_nothing_that_counts(place):
    one = place.scheduler("one")
    wait_for(lambda: one.serves() and sees_pool(one))
    two = place.scheduler("two")
    code = store_code(one)
    run_id = submit(one, code)
    wait_for(lambda: is_in(two, run_id, "RUNNING") or is_in(two, run_id, "QUEUED"))
    assert not two.serves()
    with pytest.raises(grpc.RpcError) as refused:
        submit(two, code)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert one.endpoint in refused.value.details()
    one.signal(signal.SIGSTOP)
    wait_for(two.serves)
    before = submit(two, code)
    one.signal(signal.SIGCONT)
    wait_for(lambda: not one.serves())
    after = submit(two, code)
    with pytest.raises(grpc.RpcError) as late:
        submit(one, code)
    assert late.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED}
    commits = accepted_commits(place.bootstrap)
    check_no_gap_no_repeat(commits)
    streams = [commit.stream for commit in commits]
    assert f"runs/{before}" in streams
    assert f"runs/{after}" in streams


def test_a_killed_broker_costs_no_fact_and_the_scheduler_leads_on(place, stack):
    one = place.scheduler("one")
    wait_for(lambda: one.serves() and sees_pool(one))
    code = store_code(one)
    before, during = submit(one, code), uuid7()
    was = stack.kill("kafka")
    with suppress(grpc.RpcError):  # with or without an answer: what landed is asked for below
        submit(one, code, during)
    assert get(one, before).run_id == before
    stack.wait_restarted(was)

    def lands() -> bool:
        with suppress(grpc.RpcError):  # until the broker is back
            return submit(one, code, during) == during
        return False

    wait_for(lands)
    wait_for(one.serves)
    wait_for(lambda: is_in(one, during, "RUNNING"))
    commits = accepted_commits(place.bootstrap)
    check_no_gap_no_repeat(commits)
    assert facts_of(place, during).count("RunSubmitted") == 1


def test_poison_and_forged_commits_stop_nobody(place):
    one, hands = place.scheduler("one"), Hands(place.bootstrap)
    wait_for(lambda: one.serves() and sees_pool(one))
    code = store_code(one)
    run_id = submit(one, code)
    for topic in (RUNS, ATTEMPTS, CHECKPOINTS, EVALUATIONS, COMMANDS):
        hands.poison(topic)
    forged = RunCancelled(reason="forged", ended_at=SystemClock().now())
    hands.forge(run_id, forged, Term(0, 1))
    hands.forge(run_id, forged, Term(0, 999))
    wait_for(lambda: is_in(one, run_id, "RUNNING"))
    hands.end_attempt(run_id, 1, Reason.COMPLETED)
    wait_for(lambda: is_in(one, run_id, "SUCCEEDED"))
    assert "RunCancelled" not in facts_of(place, run_id)


def test_blobs_travel_in_and_out_whole(place):
    one = place.scheduler("one")
    wait_for(one.serves)
    content = bytes(range(256)) * 20_000
    with channel_to(one) as channel:
        blobs = BlobServiceStub(channel)
        source = io.BytesIO(content)
        chunks = iter(lambda: source.read(1 << 20), b"")
        stored = blobs.PutBlob((blob_service_pb2.PutBlobRequest(chunk=chunk) for chunk in chunks), timeout=20)
        assert stored.size_bytes == len(content)
        back = blobs.GetBlob(blob_service_pb2.GetBlobRequest(digest=stored.digest), timeout=20)
        assert b"".join(piece.chunk for piece in back) == content
        missing = "sha256:" + "0" * 64
        asked = blob_service_pb2.HasBlobsRequest(digests=[stored.digest, missing])
        assert list(blobs.HasBlobs(asked, timeout=10).present) == [stored.digest]
        with pytest.raises(grpc.RpcError) as absent:
            list(blobs.GetBlob(blob_service_pb2.GetBlobRequest(digest=missing), timeout=10))
        assert absent.value.code() is grpc.StatusCode.NOT_FOUND
