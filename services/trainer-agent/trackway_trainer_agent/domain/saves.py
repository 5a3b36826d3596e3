"""What becomes of the checkpoints of one attempt: complete when every rank's receipt is there, else abandoned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, TypeVar, assert_never

from trackway_common.events import PhaseSeconds

from trackway_trainer_agent.domain.phases import attempt_phases

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCaptured:
    """A rank's state is in its actor's keeping."""

    rank: int
    step: int
    nonce: str
    size_bytes: int
    blocked_seconds: float
    parts: int
    """Receipts that will make the checkpoint complete."""
    phases: PhaseSeconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPersisted:
    """A rank's shards and receipt are durable."""

    rank: int
    step: int
    nonce: str
    size_bytes: int
    parts: int
    """Receipts that make the checkpoint complete."""
    metrics: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFailed:
    """A rank's part will never be on disk."""

    rank: int
    step: int
    nonce: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOver:
    """Nothing more will come from this rank."""

    rank: int
    why: str


SaveEvent: TypeAlias = PartCaptured | PartPersisted | PartFailed | RankOver


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Record that the checkpoint was started."""

    step: int
    nonce: str
    size_bytes: int
    blocked_seconds: float
    phases: PhaseSeconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCommit:
    """Ask the checkpointer to verify the receipts and append the marker."""

    step: int
    nonce: str
    parts: int
    metrics: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """Record that the checkpoint will never be complete."""

    step: int
    nonce: str
    why: str


SaveIntent: TypeAlias = Announce | RequestCommit | Abandon


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One checkpoint, as its ranks told of it."""

    step: int
    nonce: str
    captured: Mapping[int, PartCaptured] = field(default_factory=lambda: MappingProxyType({}))
    persisted: Mapping[int, PartPersisted] = field(default_factory=lambda: MappingProxyType({}))
    announced: bool = False
    complete: bool = False
    abandoned: bool = False

    @property
    def open(self) -> bool:
        """Neither complete nor given up."""
        return not self.complete and not self.abandoned

    @property
    def parts(self) -> int:
        """Receipts that make it complete."""
        captured = (part.parts for part in self.captured.values())
        return max((*captured, *(part.parts for part in self.persisted.values())))

    @property
    def holders(self) -> frozenset[int]:
        """Ranks that have a part of it."""
        return frozenset(self.captured) | frozenset(self.persisted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveBook:
    """All checkpoints of one attempt."""

    world_size: int
    saves: Mapping[str, Save] = field(default_factory=lambda: MappingProxyType({}))
    over: frozenset[int] = frozenset()
    """Ranks that nothing more comes from."""

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Nonces of what every rank captured and not every rank has on disk yet."""
        return tuple(save.nonce for save in self.saves.values() if save.announced and save.open)

    @property
    def complete(self) -> tuple[Save, ...]:
        """Those whose commit was asked for."""
        return tuple(save for save in self.saves.values() if save.complete)


def react(book: SaveBook, event: SaveEvent) -> tuple[SaveBook, tuple[SaveIntent, ...]]:
    """The book after an event, and what is to be done; the same event again asks for nothing."""
    match event:
        case PartCaptured():
            save = _save(book, event.nonce, event.step)
            return _settle(book, replace(save, captured=_with(save.captured, event.rank, event)))
        case PartPersisted():
            save = _save(book, event.nonce, event.step)
            return _settle(book, replace(save, persisted=_with(save.persisted, event.rank, event)))
        case PartFailed():
            return _give_up(book, _save(book, event.nonce, event.step), f"rank {event.rank}: {event.why}")
        case RankOver():
            return _rank_over(book, event)
        case _ as never:
            assert_never(never)


def _settle(book: SaveBook, save: Save) -> tuple[SaveBook, tuple[SaveIntent, ...]]:
    if save.open and (missing := min(book.over & _awaited(book, save), default=None)) is not None:
        return _give_up(book, save, f"rank {missing} ended before its receipt")
    intents: list[SaveIntent] = []
    done = len(save.persisted) >= save.parts
    if save.open and not save.announced and (done or len(save.captured) >= save.parts):
        intents.append(_announce(save))
        save = replace(save, announced=True)
    if save.open and done:
        intents.append(RequestCommit(step=save.step, nonce=save.nonce, parts=save.parts, metrics=_metrics(save)))
        save = replace(save, complete=True)
    return _put(book, save), tuple(intents)


def _awaited(book: SaveBook, save: Save) -> frozenset[int]:
    """Ranks whose receipt the checkpoint still needs: of a program's own folder only who holds it, else all."""
    needed = save.holders if len(save.holders) >= save.parts else frozenset(range(book.world_size))
    return needed - save.persisted.keys()


def _give_up(book: SaveBook, save: Save, why: str) -> tuple[SaveBook, tuple[SaveIntent, ...]]:
    if not save.open:
        return book, ()
    return _put(book, replace(save, abandoned=True)), (Abandon(step=save.step, nonce=save.nonce, why=why),)


def _rank_over(book: SaveBook, event: RankOver) -> tuple[SaveBook, tuple[SaveIntent, ...]]:
    book = replace(book, over=book.over | {event.rank})
    intents: list[SaveIntent] = []
    for save in book.saves.values():
        if save.open and event.rank in _awaited(book, save):
            why = f"rank {event.rank} ended before its receipt: {event.why}"
            book, given_up = _give_up(book, save, why)
            intents += given_up
    return book, tuple(intents)


def _announce(save: Save) -> Announce:
    sizes = {rank: part.size_bytes for rank, part in save.captured.items()}
    sizes |= {rank: part.size_bytes for rank, part in save.persisted.items()}
    blocked = max((part.blocked_seconds for part in save.captured.values()), default=0.0)
    return Announce(
        step=save.step,
        nonce=save.nonce,
        size_bytes=sum(sizes.values()),
        blocked_seconds=blocked,
        phases=attempt_phases(part.phases for part in save.captured.values()),
    )


def _metrics(save: Save) -> tuple[tuple[str, float], ...]:
    """Those of the lowest rank that gave any: ranks of one step report alike."""
    return next((save.persisted[rank].metrics for rank in sorted(save.persisted) if save.persisted[rank].metrics), ())


def _save(book: SaveBook, nonce: str, step: int) -> Save:
    return book.saves.get(nonce) or Save(step=step, nonce=nonce)


def _put(book: SaveBook, save: Save) -> SaveBook:
    return replace(book, saves=_with(book.saves, save.nonce, save))


def _with(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    return MappingProxyType({**mapping, key: value})
