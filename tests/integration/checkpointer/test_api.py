"""The whole service around an in-memory log: health, heartbeats and its RPCs."""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from trackway_checkpointer.service import run_checkpointer
from trackway_checkpointer.settings import CheckpointerBlock, CheckpointerSettings
from trackway_common.checkpoint.collect import collect
from trackway_common.checkpoint.entries import Fence, Quarantine
from trackway_common.checkpoint.retention import KeepLast
from trackway_common.codec import decode_request
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.event_log import InMemoryEventLog
from trackway_common.object_store import open_store
from trackway_common.rpc_errors import as_trackway_error
from trackway_common.settings import KafkaSettings, StoreSettings
from trackway_common.testing.checkpoints import CONFIG, DATASET, CheckpointedRun
from trackway_common.topics import COMMANDS
from trackway_proto.v1 import checkpoint_service_pb2 as pb
from trackway_proto.v1 import checkpoint_service_pb2_grpc
from trackway_proto.v1.vocabulary_pb2 import CheckpointPhase

from tests.support.tasks import cancel

RUN = "0190f000-0000-7000-8000-000000000001"
OTHER = "0190f111-0000-7000-8000-000000000002"


@pytest.fixture
def run(tmp_path):
    made = CheckpointedRun(open_store(f"file://{tmp_path}/objects"), RUN)
    made.now_ms = 1_800_000_000_000
    made.log().append(Fence(epoch=1))
    for step in range(1, 6):
        made.save(step)
    return made


@pytest.fixture
async def service(tmp_path, run):
    log = InMemoryEventLog()
    settings = CheckpointerSettings(
        kafka=KafkaSettings(bootstrap="unused:1"),
        store=StoreSettings(url=f"file://{tmp_path}/objects"),
        checkpointer=CheckpointerBlock(grace_s=0, sweep_s=0.1),
        instance="one",
    )
    running = asyncio.ensure_future(run_checkpointer(settings, log))
    endpoint = await heartbeat_endpoint(log)
    async with grpc.aio.insecure_channel(endpoint) as channel:
        await serving(channel)
        yield checkpoint_service_pb2_grpc.CheckpointServiceStub(channel)
    await cancel(running)


async def heartbeat_endpoint(log) -> str:
    async with asyncio.timeout(10):
        while not (records := log.records(COMMANDS)):
            await asyncio.sleep(0.01)
    heartbeat = decode_request(records[0].value).body
    assert (heartbeat.service, heartbeat.instance) == ("checkpointer", "one")
    return heartbeat.endpoint


async def serving(channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    async with asyncio.timeout(10):
        while True:
            answer = await stub.Check(health_pb2.HealthCheckRequest())
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return
            await asyncio.sleep(0.01)


async def refusal(call):
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return as_trackway_error(raised.value)


async def test_checkpoints_are_listed_newest_first_in_pages(service):
    names, token = [], ""
    while True:
        answer = await service.ListCheckpoints(
            pb.ListCheckpointsRequest(parent=f"projects/p/runs/{RUN}", page_size=2, page_token=token)
        )
        assert len(answer.checkpoints) <= 2
        names += [checkpoint.name for checkpoint in answer.checkpoints]
        if not (token := answer.next_page_token):
            break
    assert len(names) == 5
    assert [name.rpartition("/")[2][:10] for name in names] == [f"s{step:09d}" for step in (5, 4, 3, 2, 1)]
    assert names[0].startswith(f"projects/p/runs/{RUN}/checkpoints/s000000005-e0001-")


async def test_a_checkpoint_is_found_by_name_and_by_step(service, run):
    by_step = await service.GetCheckpoint(pb.GetCheckpointRequest(name=f"{RUN}/checkpoints/3"))
    by_name = await service.GetCheckpoint(pb.GetCheckpointRequest(name=by_step.name))
    assert by_name == by_step
    commit = run.log().refresh().commits[4]
    assert (by_step.ref.step, by_step.ref.slot, by_step.ref.run_id) == (3, 4, RUN)
    assert by_step.ref.manifest_digest == commit.commit.manifest_digest
    assert (by_step.world_size, by_step.samples_consumed) == (2, 96)
    assert (by_step.config_digest, list(by_step.dataset_digests)) == (CONFIG, [DATASET])
    assert by_step.committed_at.ToMilliseconds() == run.now_ms


async def test_the_beginning_of_a_run_id_is_enough_while_it_is_unique(service, run):
    short = pb.ListCheckpointsRequest(parent="0190f0")
    assert len((await service.ListCheckpoints(short)).checkpoints) == 5
    other = CheckpointedRun(run.store, OTHER)
    other.log().append(Fence(epoch=1))
    assert len((await service.ListCheckpoints(short)).checkpoints) == 5
    error = await refusal(service.ListCheckpoints(pb.ListCheckpointsRequest(parent="0190f")))
    assert "2 runs begin with" in str(error)


async def test_phases_follow_the_log(service, run):
    run.log().append(Quarantine(commit_slot=5, why="bad"))
    answer = await service.ListCheckpoints(pb.ListCheckpointsRequest(parent=RUN))
    phases = [CheckpointPhase.Name(one.phase) for one in answer.checkpoints]
    assert phases == [f"CHECKPOINT_PHASE_{name}" for name in ("COMMITTED", "QUARANTINED", *["COMMITTED"] * 3)]


async def test_a_whole_checkpoint_is_verified(service):
    answer = await service.VerifyCheckpoint(pb.VerifyCheckpointRequest(name=f"{RUN}/checkpoints/5"))
    assert (answer.ok, answer.files, list(answer.problems)) == (True, 4, [])
    assert answer.size_bytes > 2000


async def test_a_flipped_bit_is_reported_by_file(service, run, tmp_path):
    [path] = tmp_path.glob(f"objects/checkpoints/{RUN}/data/s000000005-*/shard/r00001-0.bin")
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    answer = await service.VerifyCheckpoint(pb.VerifyCheckpointRequest(name=f"{RUN}/checkpoints/5"))
    assert not answer.ok
    assert len(answer.problems) == 1
    assert "shard/r00001-0.bin" in answer.problems[0]


@pytest.mark.parametrize("name", ["nonsense", f"{RUN}/checkpoints/", "projects//x"])
async def test_bad_names_are_refused_with_their_field(service, name):
    error = await refusal(service.GetCheckpoint(pb.GetCheckpointRequest(name=name)))
    assert isinstance(error, CommandRejected)
    assert error.violations[0].field in {"name", "parent"}


async def test_what_does_not_exist_is_not_found(service):
    for name in (f"{RUN}/checkpoints/99", f"{RUN}/checkpoints/s000000001-e0009-abcd", "nobody/checkpoints/1"):
        assert isinstance(await refusal(service.GetCheckpoint(pb.GetCheckpointRequest(name=name))), NotFound)
    assert isinstance(await refusal(service.ListCheckpoints(pb.ListCheckpointsRequest(parent="nobody"))), NotFound)


async def test_paging_arguments_are_checked(service):
    for request in (
        pb.ListCheckpointsRequest(parent=RUN, page_size=-1),
        pb.ListCheckpointsRequest(parent=RUN, page_token="mine"),
    ):
        assert isinstance(await refusal(service.ListCheckpoints(request)), CommandRejected)


async def test_a_deleted_checkpoint_is_listed_and_not_verified(service, run):
    collect(run.log(), KeepLast(count=2), grace_ms=0)
    answer = await service.ListCheckpoints(pb.ListCheckpointsRequest(parent=RUN))
    phases = [CheckpointPhase.Name(one.phase).removeprefix("CHECKPOINT_PHASE_") for one in answer.checkpoints]
    assert phases == ["COMMITTED", "COMMITTED", "DELETED", "DELETED", "DELETED"]
    error = await refusal(service.VerifyCheckpoint(pb.VerifyCheckpointRequest(name=f"{RUN}/checkpoints/1")))
    assert "deleted by retention" in str(error)
