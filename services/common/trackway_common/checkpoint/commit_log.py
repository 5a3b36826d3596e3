"""A run's commit log: append, read, fold.

Writers race for the next slot with create-if-absent; who loses reads what won and judges again.
So fencing is done by the store itself: a zombie loses the race, reads the higher epoch and stops.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress

from trackway_common.checkpoint.admission import admit
from trackway_common.checkpoint.entries import MAX_ENTRY_BYTES, Body, LogEntry, decode_entry, encode_entry
from trackway_common.checkpoint.layout import hint_key, log_key, log_prefix, parse_slot_file, slot_file
from trackway_common.checkpoint.log_state import LogState, fold, head_after
from trackway_common.errors import CommandRejected, CorruptLog, NotFound, Unavailable
from trackway_common.object_store.port import AlreadyExists, ObjectStore

HINT_EVERY = 16
"""Slots between two writes of the hint: a listing that starts there sees at most that many entries."""
_MAX_HINT_BYTES = 20


class CommitLog:
    """The commit log of one run; blocks on storage. Not for two threads at once: give each its own."""

    def __init__(self, store: ObjectStore, run_id: str, *, writer: str, now_ms: Callable[[], int]) -> None:
        self.store = store
        self.run_id = run_id
        self._writer = writer
        self._now_ms = now_ms
        self._state = LogState()
        self._durable_slot = 0

    @property
    def state(self) -> LogState:
        """The fold so far, without reading."""
        return self._state

    def now_ms(self) -> int:
        """The clock that entries of this writer are stamped with."""
        return self._now_ms()

    def refresh(self) -> LogState:
        """Read what was appended since, and return the fold of the whole log.

        Raises:
            CorruptLog: a slot is missing or holds what no correct writer can have written.
        """
        if self._state.slot == 0:
            refuse_gaps(self.slots())
        self._state = fold(self._state, self._new_entries())
        return self._state

    def append(self, body: Body, *, epoch: int | None = None) -> LogEntry:
        """Append the entry, or return the one that says the same already; durable on return.

        After ``Unavailable`` the entry may be there or not: call again with the same body.

        Raises:
            Fenced: a higher epoch than ``epoch``, or than the body's own, owns the run.
            CommandRejected: the entry would break a promise of the log.
        """
        while True:
            state = self.refresh()
            existing = admit(state, body, at_ms=self._now_ms(), epoch=epoch)
            if existing is not None:
                self.settle()
                return self.entry(existing)
            # An entry of another writer that a power cut took would leave a gap below ours.
            self.settle()
            entry = self._next_entry(state, body)
            try:
                self.store.put_if_absent(log_key(self.run_id, entry.slot), encode_entry(entry))
            except AlreadyExists:
                if not self._is_ours(entry):
                    continue
            else:
                self._durable_slot = entry.slot
            self._state = fold(self._state, (entry,))
            self.settle()
            self._leave_hint(entry.slot)
            return entry

    def entry(self, slot: int) -> LogEntry:
        """Read one entry.

        Raises:
            NotFound: nothing is in that slot yet.
            CorruptLog: it is damaged.
        """
        key = log_key(self.run_id, slot)
        try:
            data = self.store.get(key, limit_bytes=MAX_ENTRY_BYTES)
        except NotFound:
            raise
        except CommandRejected as error:
            raise CorruptLog(f"commit log slot {slot}: {error}") from error
        return decode_entry(data, slot=slot)

    def entries(self, *, after: int = 0) -> Iterator[LogEntry]:
        """Yield the entries after a slot, up to the newest."""
        slot = after
        while True:
            slot += 1
            try:
                entry = self.entry(slot)
            except NotFound:
                return
            yield entry

    def tip(self) -> LogEntry | None:
        """The newest entry, for one listing and one read; None for an empty log."""
        slots = self.slots(after=self._hint()) or self.slots()
        return self.entry(slots[-1]) if slots else None

    def slots(self, *, after: int = 0) -> list[int]:
        """Slots that are taken, by listing."""
        names = self.store.names(log_prefix(self.run_id), start_after=slot_file(after))
        return [slot for slot in map(parse_slot_file, names) if slot is not None]

    def settle(self) -> None:
        """Make every entry read so far durable, before others are told of it: its writer may have died too early."""
        if self._durable_slot < self._state.slot:
            self.store.settle(log_prefix(self.run_id))
            self.store.anchor(log_prefix(self.run_id))
            self._durable_slot = self._state.slot

    def _new_entries(self) -> Iterator[LogEntry]:
        return self.entries(after=self._state.slot)

    def _next_entry(self, state: LogState, body: Body) -> LogEntry:
        slot = state.slot + 1
        return LogEntry(
            slot=slot,
            at_ms=self._now_ms(),
            writer=self._writer,
            token=secrets.token_hex(8),
            body=body,
            head=head_after(state.head, slot, body),
        )

    def _is_ours(self, entry: LogEntry) -> bool:
        # A store that retries by itself reports the success of its first try as a conflict.
        return self.entry(entry.slot).token == entry.token

    def _leave_hint(self, slot: int) -> None:
        if slot % HINT_EVERY == 0:
            # The entry stands; a hint that can't be written costs the next reader a longer listing.
            with suppress(Unavailable):
                self.store.put(hint_key(self.run_id), str(slot - 1).encode())

    def _hint(self) -> int:
        try:
            text = self.store.get(hint_key(self.run_id), limit_bytes=_MAX_HINT_BYTES)
        except CommandRejected:
            return 0
        return int(text) if text.isdigit() else 0


def refuse_gaps(slots: list[int]) -> None:
    """Raise ``CorruptLog`` unless the slots are 1, 2, 3 …: writers never leave one out."""
    for expected, slot in enumerate(slots, start=1):
        if slot != expected:
            raise CorruptLog(f"commit log slot {expected} is missing, slot {slot} is there: entries were removed")
