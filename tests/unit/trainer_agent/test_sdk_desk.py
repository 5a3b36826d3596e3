"""What the actor answers a trainer, well-behaved or not."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trackway_common.events import Entrypoint, EntrypointKind
from trackway_common.object_store import InMemoryObjectStore
from trackway_common.rank_protocol.framing import LENGTH, Channel, PeerGone
from trackway_common.rank_protocol.messages import (
    PROTOCOL_VERSION,
    Accepted,
    Captured,
    Hello,
    Message,
    Refused,
    Report,
    SaveState,
    SaveStateAsked,
    StageRequested,
    Staging,
)
from trackway_common.rank_protocol.phases import Phases
from trackway_trainer_agent.worker.journal import Journal
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.record_buffer import RecordBuffer
from trackway_trainer_agent.worker.records import (
    CheckpointAbandoned,
    CheckpointCaptured,
    CheckpointPersisted,
    FirstStepReported,
    PhasesMeasured,
    StepMetrics,
)
from trackway_trainer_agent.worker.saver import Saver
from trackway_trainer_agent.worker.sdk_desk import SdkDesk
from trackway_trainer_agent.worker.sdk_server import SdkServer

SPEC = RankSpec(
    run_id="run",
    attempt=1,
    epoch=1,
    attempt_token="token",
    rank=0,
    world_size=1,
    local_rank=0,
    local_world_size=1,
    group_rank=0,
    group_world_size=1,
    master_addr="127.0.0.1",
    master_port=0,
    entrypoint=Entrypoint(kind=EntrypointKind.COMMAND, argv=("true",)),
    store_url="file:///unused",
    code_archive_digest=None,
    hyperparameters_json="{}",
    config_digest="sha256:0",
    seed=1,
)
HEADER = b'{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
SHARD = len(HEADER).to_bytes(8, "little") + HEADER + b"ab"


class Trainer:
    """The SDK's end of the socket, by hand."""

    def __init__(self, path: Path) -> None:
        self.raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.raw.connect(os.fspath(path))
        self.channel = Channel(self.raw)

    def ask(self, message: Message) -> Message:
        self.channel.send(message)
        return self.channel.receive()[0]


def captured(**changes: object) -> Captured:
    fields: dict[str, object] = {
        "step": 5,
        "nonce": "abcd1234",
        "size_bytes": len(SHARD),
        "items": 1,
        "cursor_seed": "7",
        "data_epoch": 0,
        "samples_consumed": 60,
        "blocked_seconds": 0.1,
        "metrics": {"loss": 0.5},
    }
    return Captured(**{**fields, **changes})


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(RecordBuffer(tmp_path / "records"))
    yield made
    made.close()


@pytest.fixture
def connect(journal: Journal, tmp_path: Path) -> Iterator[Callable[[], Trainer]]:
    saver = Saver(journal)
    desk = SdkDesk(SPEC, journal=journal, saver=saver, store=InMemoryObjectStore())
    server = SdkServer(tmp_path / "sdk", desk.handle)
    trainers: list[Trainer] = []

    def connected() -> Trainer:
        trainers.append(Trainer(tmp_path / "sdk"))
        return trainers[-1]

    yield connected
    for trainer in trainers:
        trainer.channel.close()
    server.close(5)
    saver.close()
    desk.close()


def told(journal: Journal) -> list[object]:
    return [numbered.record for numbered in journal.drain(0, 100).records]


def staged(trainer: Trainer, content: bytes) -> None:
    trainer.channel.send(StageRequested(size_bytes=len(content)))
    answer, descriptor = trainer.channel.receive()
    assert isinstance(answer, Staging)
    assert answer.size_bytes >= len(content)
    assert descriptor is not None
    os.pwrite(descriptor, content, 0)
    os.close(descriptor)


def test_same_version_is_welcome_another_is_not(connect: Callable[[], Trainer]) -> None:
    assert connect().ask(Hello(version=PROTOCOL_VERSION, pid=1, dumps_stacks=True)) == Accepted()
    answer = connect().ask(Hello(version=PROTOCOL_VERSION + 1, pid=1, dumps_stacks=True))
    assert isinstance(answer, Refused)
    assert f"version {PROTOCOL_VERSION + 1}" in answer.why


def test_first_report_is_a_fact(connect: Callable[[], Trainer], journal: Journal) -> None:
    trainer = connect()
    trainer.channel.send(Report(step=4, values={"loss": 1.5}, at_ms=10))
    trainer.channel.send(Report(step=5, values={"loss": 1.0}, at_ms=11))
    trainer.ask(SaveStateAsked(wait=False))
    assert told(journal) == [
        FirstStepReported(step=4, at_ms=10),
        StepMetrics(step=4, values=(("loss", 1.5),), at_ms=10),
        StepMetrics(step=5, values=(("loss", 1.0),), at_ms=11),
    ]
    assert journal.last_step == 5


def test_a_session_s_last_word_of_its_time_is_kept(connect: Callable[[], Trainer], journal: Journal) -> None:
    assert journal.drain(0, 1).phases is None
    trainer = connect()
    trainer.ask(Hello(version=PROTOCOL_VERSION, pid=1, dumps_stacks=True))
    opened = journal.drain(0, 1).phases
    assert opened is not None
    assert opened.phases == Phases()
    trainer.channel.send(Report(step=4, values={}, at_ms=10, phases={"data_wait_seconds": 1.5, "step_seconds": 3}))
    staged(trainer, SHARD)
    assert journal.drain(0, 1).phases == PhasesMeasured(
        phases=Phases(data_wait_seconds=1.5, step_seconds=3.0), at_ms=10
    )
    assert trainer.ask(captured(phases={"checkpoint_stall_seconds": 0.5}, at_ms=20)) == Accepted()
    [capture] = [record for record in told(journal) if isinstance(record, CheckpointCaptured)]
    assert capture.phases == journal.phases == PhasesMeasured(phases=Phases(checkpoint_stall_seconds=0.5), at_ms=20)


@pytest.mark.parametrize("wrong", [{"phases": {"step_seconds": -1}}, {"phases": {"idle": 1}}, {"at_ms": 10**20}])
def test_a_time_that_is_none_ends_the_conversation_and_is_not_kept(
    connect: Callable[[], Trainer], journal: Journal, wrong: dict[str, object]
) -> None:
    trainer = connect()
    trainer.channel.send(Report(**({"step": 4, "values": {}, "at_ms": 10} | wrong)))
    with pytest.raises((PeerGone, ConnectionError)):
        trainer.channel.receive()
    assert told(journal) == []
    assert journal.phases is None


def test_capture_becomes_durable(connect: Callable[[], Trainer], journal: Journal) -> None:
    trainer = connect()
    staged(trainer, SHARD)
    assert trainer.ask(captured()) == Accepted()
    assert trainer.ask(SaveStateAsked(wait=True)) == SaveState(in_flight=False)
    taken, persisted = told(journal)
    assert isinstance(taken, CheckpointCaptured)
    assert isinstance(persisted, CheckpointPersisted)
    assert (taken.step, taken.samples_consumed, taken.metrics) == (5, 60, (("loss", 0.5),))
    assert persisted.receipt_path == "data/s000000005-e0001-abcd1234/rank/r00000.json"


def test_capture_that_lost_a_tensor_is_written_down_as_such(connect: Callable[[], Trainer], journal: Journal) -> None:
    """Planned is not written: the checkpointer refuses it by the receipt."""
    trainer = connect()
    staged(trainer, SHARD)
    assert trainer.ask(captured(items=2)) == Accepted()
    trainer.ask(SaveStateAsked(wait=True))
    assert isinstance(told(journal)[-1], CheckpointPersisted)


def test_capture_without_a_header_is_abandoned(connect: Callable[[], Trainer], journal: Journal) -> None:
    trainer = connect()
    staged(trainer, b"\xff" * 100)
    trainer.ask(captured(size_bytes=100))
    trainer.ask(SaveStateAsked(wait=True))
    abandoned = told(journal)[-1]
    assert isinstance(abandoned, CheckpointAbandoned)
    assert "header" in abandoned.why


def test_more_than_the_memory_holds_is_refused(connect: Callable[[], Trainer], journal: Journal) -> None:
    answer = connect().ask(captured(size_bytes=2**40))
    assert isinstance(answer, Refused)
    assert told(journal) == []


@pytest.mark.parametrize(
    "words",
    [
        LENGTH.pack(2**31),
        LENGTH.pack(3) + b"abc",
        LENGTH.pack(28) + b'{"kind": "Report", "step":1}',
        LENGTH.pack(36) + b'{"kind": "Staging", "size_bytes": 1}',
    ],
    ids=["absurd length", "no JSON", "missing fields", "not a trainer's message"],
)
def test_nonsense_ends_that_conversation_only(connect: Callable[[], Trainer], words: bytes) -> None:
    bad, good = connect(), connect()
    bad.raw.sendall(words)
    with pytest.raises(PeerGone):
        bad.channel.receive()
    assert good.ask(SaveStateAsked(wait=False)) == SaveState(in_flight=False)
