"""Carries out one order: tries until the evaluation is settled, and records each try's end."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass
from functools import partial

from trackway_common.errors import CommandRejected, CorruptLog, Fenced
from trackway_common.events import EvaluationFailure
from trackway_common.ids import evaluation_stream
from trackway_common.telemetry import span

from trackway_evaluator.adapters.outcomes import Broken, Outcome
from trackway_evaluator.adapters.tries import Tries, Try
from trackway_evaluator.domain.budgets import batch_size
from trackway_evaluator.domain.commands import RecordFailure, RequestEvaluation, StartAttempt
from trackway_evaluator.domain.order import Order
from trackway_evaluator.domain.state import Evaluation
from trackway_evaluator.shell.examiner import Examiner
from trackway_evaluator.shell.patience import PatientOwner

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationShell:
    """What carrying out an order needs."""

    log_owner: PatientOwner
    tries: Tries
    examiner: Examiner

    def is_open(self, order: Order) -> bool:
        """Whether the order still needs work, as far as the log was read."""
        evaluation = self._find(order)
        if evaluation is None or not evaluation.settled:
            return True
        return evaluation.result is None and evaluation.round < order.round

    async def carry_out(self, order: Order) -> None:
        """Work until the evaluation is settled, or another evaluator took it over."""
        where = {"run_id": order.run_id, "evaluation_id": order.evaluation_id}
        with span("evaluate", traceparent=order.traceparent, **where):
            try:
                await self._until_settled(order)
            except Fenced as error:
                log.warning("another evaluator took over", extra={**where, "error": str(error)})
            except CorruptLog as error:
                log.error("evaluation left alone: its stream can't be decided on", extra={**where, "error": str(error)})

    async def _until_settled(self, order: Order) -> None:
        await self.log_owner.claim(order)
        await self.log_owner.execute(order, _request(order), "request")
        while not (evaluation := self._evaluation(order)).settled:
            attempt, outcome = await self._next_outcome(order, evaluation)
            await self._record(order, attempt, outcome)
        if evaluation.result is not None:
            await asyncio.to_thread(self.tries.forget, order)
        settled = {"run_id": order.run_id, "evaluation_id": order.evaluation_id, "phase": evaluation.phase.value}
        log.info("evaluation settled", extra=settled)

    async def _next_outcome(self, order: Order, evaluation: Evaluation) -> tuple[int, Outcome]:
        if evaluation.attempt_open:
            found = await self.tries.find(order, evaluation.attempt)
            return evaluation.attempt, await _ended(found) if isinstance(found, Try) else found
        attempt = evaluation.attempt + 1
        try:
            return attempt, await self._try(order, evaluation, attempt)
        except OSError as error:
            return attempt, Broken(failure=EvaluationFailure.CRASH, message=f"no process could be started: {error}")
        except CommandRejected as error:
            return attempt, Broken(failure=EvaluationFailure.CONFIG_INVALID, message=error.message)

    async def _try(self, order: Order, evaluation: Evaluation, attempt: int) -> Outcome:
        pack = await self.log_owner.from_storage(partial(self.examiner.store.pack, order.pack.digest))
        samples_at_once = batch_size(pack.evaluator.batch_size, evaluation.failed_by(EvaluationFailure.OOM))
        running = await self.tries.start(order, attempt, samples_at_once)
        started = StartAttempt(
            evaluation_id=order.evaluation_id,
            attempt=attempt,
            host=socket.gethostname(),
            pid=running.pid,
            batch_size=samples_at_once,
            started_at=self.examiner.clock.now(),
        )
        try:
            await self.log_owner.execute(order, started, f"start/{attempt}")
        except asyncio.CancelledError:
            await running.stop()
            raise
        return await _ended(running)

    async def _record(self, order: Order, attempt: int, outcome: Outcome) -> None:
        examine = partial(self.examiner.examine, order, attempt, outcome, self.tries.folder(order))
        command = await self.log_owner.from_storage(examine)
        try:
            await self.log_owner.execute(order, command, f"end/{attempt}")
        except CommandRejected as error:
            if isinstance(command, RecordFailure):
                raise CorruptLog(f"attempt {attempt} can't be ended: {error}") from error
            # A result that no commit can hold, such as one with thousands of slices.
            broken = Broken(failure=EvaluationFailure.CONFIG_INVALID, message=error.message)
            await self.log_owner.execute(order, self.examiner.failure(order, attempt, broken), f"end/{attempt}")

    def _find(self, order: Order) -> Evaluation | None:
        state = self.log_owner.owner.state(evaluation_stream(order.run_id))
        return None if state is None else state.find(order.evaluation_id)

    def _evaluation(self, order: Order) -> Evaluation:
        found = self._find(order)
        assert found is not None, "it was requested before"
        return found


async def _ended(running: Try) -> Outcome:
    """The try's outcome; an evaluator that is asked to stop takes the try with it."""
    try:
        return await running.outcome()
    except asyncio.CancelledError:
        await running.stop()
        raise


def _request(order: Order) -> RequestEvaluation:
    return RequestEvaluation(
        evaluation_id=order.evaluation_id,
        round=order.round,
        pack=order.pack,
        checkpoint=order.checkpoint,
        project=order.spec.project,
        model_family=order.spec.model_family,
        final=True,
        requested_at=order.ordered_at,
    )
