"""One save at a time; a save that fails is told and does not keep the next from being made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trackway_common.object_store import StorageFull
from trackway_trainer_agent.worker.journal import Journal
from trackway_trainer_agent.worker.record_buffer import RecordBuffer
from trackway_trainer_agent.worker.records import CheckpointAbandoned, CheckpointPersisted
from trackway_trainer_agent.worker.saver import Saver


@dataclass(kw_only=True)
class FakeSave:
    """A save that ends when the test lets it, well or not."""

    step: int
    failure: Exception | None = None
    may_end: threading.Event = field(default_factory=threading.Event)

    @property
    def nonce(self) -> str:
        return f"nonce{self.step}"

    def write(self) -> CheckpointPersisted:
        assert self.may_end.wait(10)
        if self.failure is not None:
            raise self.failure
        return CheckpointPersisted(
            step=self.step,
            nonce=self.nonce,
            receipt_path="",
            size_bytes=0,
            seconds=0,
            world_size=1,
            samples_consumed=0,
            metrics=(),
            kind="session",
            at_ms=0,
        )


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(RecordBuffer(tmp_path / "records"))
    yield made
    made.close()


def told(journal: Journal) -> list[object]:
    return [numbered.record for numbered in journal.drain(0, 100).records]


def test_saves_are_made_in_order_and_told(journal: Journal) -> None:
    saver = Saver(journal)
    first, second = FakeSave(step=1), FakeSave(step=2)
    saver.submit(first)
    saver.submit(second)
    assert saver.in_flight == ("nonce1", "nonce2")
    second.may_end.set()
    first.may_end.set()
    saver.wait_idle()
    assert saver.in_flight == ()
    assert told(journal) == [first.write(), second.write()]
    saver.close()


@pytest.mark.parametrize("failure", [StorageFull("no room"), OSError(5, "broken disk"), ValueError("unforeseen")])
def test_failed_save_is_abandoned_with_its_reason_and_the_next_one_is_made(
    journal: Journal, failure: Exception
) -> None:
    saver = Saver(journal)
    failing, next_one = FakeSave(step=1, failure=failure), FakeSave(step=2)
    for save in (failing, next_one):
        save.may_end.set()
        saver.submit(save)
    saver.close()
    abandoned, persisted = told(journal)
    assert isinstance(abandoned, CheckpointAbandoned)
    assert (abandoned.step, abandoned.nonce) == (1, "nonce1")
    assert abandoned.why == f"{type(failure).__name__}: {failure}"
    assert persisted == next_one.write()


def test_close_finishes_what_was_submitted(journal: Journal) -> None:
    saver = Saver(journal)
    save = FakeSave(step=1)
    saver.submit(save)
    threading.Timer(0.05, save.may_end.set).start()
    saver.close()
    assert told(journal) == [save.write()]
