"""Carries commands out: verify, commit, retire older checkpoints, publish."""

from __future__ import annotations

import logging
from functools import partial
from typing import assert_never

from trackway_common.checkpoint.collect import supersede
from trackway_common.checkpoint.commit import commit_checkpoint
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import LogEntry
from trackway_common.errors import CommandRejected, CorruptLog, Fenced
from trackway_common.events import CommitCheckpoint, SyncCommitLog
from trackway_common.telemetry import span

from trackway_checkpointer.domain.commands import commit_request, retention
from trackway_checkpointer.shell.caretaker import Caretaker
from trackway_checkpointer.shell.command_desk import Command
from trackway_checkpointer.shell.publisher import Publisher
from trackway_checkpointer.shell.run_logs import RunLogs

log = logging.getLogger(__name__)


class Committer:
    """Does what commands ask. Idempotent: a command that comes again finds what it asks for."""

    def __init__(self, logs: RunLogs, publisher: Publisher, caretaker: Caretaker) -> None:
        self._logs = logs
        self._publisher = publisher
        self._caretaker = caretaker

    async def carry_out(self, command: Command, traceparent: str) -> None:
        """Carry one command out; what can't be done is logged and left: asking again gives the same.

        Raises:
            Unavailable: the store or the log is away; call again.
        """
        try:
            match command:
                case CommitCheckpoint():
                    await self._commit(command, traceparent)
                case SyncCommitLog():
                    await self._publisher.publish(command.run_id, traceparent)
                case _:
                    assert_never(command)
        except (CommandRejected, Fenced) as error:
            log.warning("command refused", extra=_where(command) | {"error": str(error)})
        except CorruptLog as error:
            log.error("run left alone: its commit log can't be believed", extra=_where(command) | {"error": str(error)})
        else:
            self._caretaker.watch(command.run_id)

    async def _commit(self, command: CommitCheckpoint, traceparent: str) -> None:
        where: dict[str, str | int] = {"run_id": command.run_id, "step": command.step, "epoch": command.epoch}
        with span("commit checkpoint", traceparent=traceparent, **where):
            # First: a store that lost published entries must not give their slots away again.
            await self._publisher.publish(command.run_id, traceparent)
            entry = await self._logs.call(command.run_id, partial(_commit_and_supersede, command=command))
            await self._publisher.publish(command.run_id, traceparent)
        log.info("checkpoint committed", extra=where | {"slot": entry.slot})


def _commit_and_supersede(run_log: CommitLog, *, command: CommitCheckpoint) -> LogEntry:
    entry = commit_checkpoint(run_log, commit_request(command))
    supersede(run_log, retention(command))
    return entry


def _where(command: Command) -> dict[str, object]:
    step = {"step": command.step, "epoch": command.epoch} if isinstance(command, CommitCheckpoint) else {}
    return {"command": type(command).__name__, "run_id": command.run_id, **step}
