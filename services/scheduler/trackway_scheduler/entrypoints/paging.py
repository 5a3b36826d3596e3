"""Pages of listings. A token names the last item shown, so what arrives meanwhile moves nothing."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from trackway_common.errors import CommandRejected, FieldViolation

T = TypeVar("T")

DEFAULT_SIZE = 50
MAX_SIZE = 500

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page, and the token of the next; empty on the last."""

    items: tuple[T, ...]
    next_token: str


def page(items: Iterable[T], key: Callable[[T], Key], *, size: int, token: str, filters: Key = ()) -> Page[T]:
    """Return the page behind the token, in the order of the keys.

    Raises:
        CommandRejected: the size is negative, or the token is none of this listing.
    """
    if size < 0:
        raise _invalid("page_size", f"{size} is below 0")
    wanted = min(size or DEFAULT_SIZE, MAX_SIZE)
    ordered = sorted(items, key=key)
    if token:
        last = _last(token, filters)
        ordered = [item for item in ordered if key(item) > last]
    shown = tuple(ordered[:wanted])
    more = len(ordered) > wanted
    return Page(shown, _token(key(shown[-1]), filters) if more else "")


def newest_first(text: str) -> str:
    """A key part that reverses the order of an ASCII text."""
    return "".join(chr(0x7F - ord(character) % 0x7F) for character in text)


def _token(last: Key, filters: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([last, filters]).encode()).decode()


def _last(token: str, filters: Key) -> Key:
    try:
        last, of = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, binascii.Error) as error:
        raise _invalid("page_token", "is none of ours; start at the first page") from error
    if tuple(of) != filters:
        raise _invalid("page_token", "belongs to a listing with other filters; start at the first page")
    return tuple(str(part) for part in last)


def _invalid(field: str, description: str) -> CommandRejected:
    return CommandRejected(f"{field} {description}", violations=(FieldViolation(field=field, description=description),))
