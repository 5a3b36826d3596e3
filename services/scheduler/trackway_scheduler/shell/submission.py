"""Submissions: resolve and pin, store what is large, queue the run; or refuse it, on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.decider import fold
from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.evaluation_pack import EvaluationPack, pack_bytes, pack_digest, parse_pack
from trackway_common.events import EvaluationPackRef, RunPhase, RunSpec, Violation
from trackway_common.ids import is_uuid7, run_stream
from trackway_common.object_store import BlobStore
from trackway_common.yaml_core import load_yaml

from trackway_scheduler.domain.catalogue import Catalogue
from trackway_scheduler.domain.clipping import clipped
from trackway_scheduler.domain.commands import RefuseRun, RegisterPack, SubmitRun
from trackway_scheduler.domain.decide import ALREADY_EXISTS, decide_run
from trackway_scheduler.domain.decider import SCHEDULER
from trackway_scheduler.domain.spec import Submission, Surroundings, read_spec, resolve
from trackway_scheduler.domain.spec.reading import Draft, request_digest
from trackway_scheduler.domain.spec.resolution import SPEC_INVALID
from trackway_scheduler.domain.state import RunState
from trackway_scheduler.shell.records import Records, pack_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a caller sent."""

    request_id: str
    config: bytes
    pack_body: bytes
    submission: Submission
    validate_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolved:
    spec: RunSpec
    canonical: bytes
    pack: EvaluationPack | None


class SubmissionDesk:
    """Takes orders, one answer per request id."""

    def __init__(
        self, records: Records, blobs: BlobStore, catalogue: Catalogue, clock: Clock, wake: Callable[[], None]
    ) -> None:
        self._records = records
        self._blobs = blobs
        self._catalogue = catalogue
        self._clock = clock
        self._wake = wake

    async def submit(self, order: Order) -> RunState:
        """Return the queued run; with ``validate_only`` the run as it would be, and nothing is appended.

        Raises:
            CommandRejected: something in the order is wrong; the refusal is on record under its request id.
            Unavailable: nothing is wrong with it; send it again.
        """
        _check_request_id(order.request_id)
        body = request_digest(order.config, order.pack_body, order.submission)
        known = self._records.run(order.request_id)
        if known is not None and known.phase is not RunPhase.UNSPECIFIED:
            return await self._answer_again(known, order, body)
        try:
            resolved = await self._resolve(order)
        except CommandRejected as error:
            refused = clipped(error)
            if not order.validate_only:
                await self._perform(order, self._refusal(order, body, refused))
            raise refused from error
        return await self._accept(order, body, resolved)

    async def _accept(self, order: Order, body: str, resolved: _Resolved) -> RunState:
        command = SubmitRun(run_id=order.request_id, spec=resolved.spec, request_digest=body, at=self._clock.now())
        if order.validate_only:
            return _preview(command)
        await self._store(resolved)
        await self._perform(order, command)
        self._wake()
        run = self._records.run(order.request_id)
        assert run is not None
        return run

    async def _answer_again(self, known: RunState, order: Order, body: str) -> RunState:
        """The same body gets the same answer; another one is refused, on record unless it only validates."""
        if known.request_digest != body:
            if order.validate_only:
                raise CommandRejected(f"request_id {order.request_id} was used before", reason=ALREADY_EXISTS)
            await self._perform(order, self._refusal(order, body, CommandRejected("")))
        if known.phase is RunPhase.REFUSED:
            violations = tuple(FieldViolation(field=one.field, description=one.description) for one in known.violations)
            raise CommandRejected(known.message, reason=SPEC_INVALID, violations=violations)
        return known

    async def _resolve(self, order: Order) -> _Resolved:
        draft = read_spec(load_yaml(order.config, name="config"), order.submission)
        draft, pack = await self._with_pack(draft, order.pack_body)
        surroundings = Surroundings(
            datasets=self._records.datasets,
            pools=self._records.pools(),
            catalogue=self._catalogue,
            pack=pack,
            pack_names=self._records.pack_names(),
            code_is_stored=await self._is_stored(draft.spec.code.archive_digest),
        )
        return _Resolved(spec=resolve(draft, surroundings), canonical=draft.canonical, pack=pack)

    async def _with_pack(self, draft: Draft, body: bytes) -> tuple[Draft, EvaluationPack | None]:
        """The pack that the spec asks for; one that can't be read adds its violations to the draft's."""
        name = draft.spec.evaluation_pack.requested
        if not name:
            return draft, None
        try:
            if body:
                return draft, parse_pack(body)
            state = self._records.pack(name)
            if state is None or not state.versions:
                return draft, None
            return draft, parse_pack(await asyncio.to_thread(self._blobs.get, state.versions[-1].digest))
        except CommandRejected as refused:
            spec = replace(draft.spec, evaluation_pack=EvaluationPackRef())
            found = refused.violations or (FieldViolation(field="evaluation_pack", description=refused.message),)
            return replace(draft, spec=spec, violations=(*draft.violations, *found)), None

    async def _is_stored(self, digest: str) -> bool:
        try:
            return bool(digest) and await asyncio.to_thread(self._blobs.has, digest)
        except CommandRejected:
            return False

    async def _store(self, resolved: _Resolved) -> None:
        """Blobs come before the facts that name them."""
        await asyncio.to_thread(self._blobs.put, resolved.canonical)
        if resolved.pack is None:
            return
        await asyncio.to_thread(self._blobs.put, pack_bytes(resolved.pack))
        digest = pack_digest(resolved.pack)
        register = RegisterPack(digest=digest, at=self._clock.now())
        context = CommandContext(command_id="", actor=resolved.spec.owner)
        await self._records.perform(pack_stream(resolved.pack.name), register, context)

    async def _perform(self, order: Order, command: SubmitRun | RefuseRun) -> None:
        context = CommandContext(
            command_id=f"{order.request_id}/{command.request_digest}",
            actor=order.submission.caller,
            correlation_id=order.request_id,
        )
        await self._records.perform(run_stream(order.request_id), command, context)

    def _refusal(self, order: Order, body: str, refused: CommandRejected) -> RefuseRun:
        return RefuseRun(
            run_id=order.request_id,
            request_digest=body,
            message=refused.message,
            violations=tuple(Violation(field=one.field, description=one.description) for one in refused.violations),
            owner=order.submission.caller,
            at=self._clock.now(),
            **_named(order),
        )


def _check_request_id(request_id: str) -> None:
    if not is_uuid7(request_id):
        description = f"{request_id[:60]!r} must be a UUIDv7 in lower case, minted by the caller"
        raise CommandRejected(
            f"request_id {description}", violations=(FieldViolation(field="request_id", description=description),)
        )


def _preview(command: SubmitRun) -> RunState:
    stream = run_stream(command.run_id)
    state = fold(SCHEDULER, stream, decide_run(RunState(run_id=command.run_id), command))
    assert isinstance(state, RunState)
    return state


def _named(order: Order) -> dict[str, str]:
    """Project and family of a spec that was refused, as far as it can be read."""
    try:
        spec = read_spec(load_yaml(order.config, name="config"), order.submission).spec
    except CommandRejected:
        return {"project": "", "model_family": ""}
    return {"project": spec.project[:63], "model_family": spec.model_family[:63]}
