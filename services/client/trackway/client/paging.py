"""Answers as dataclasses, and listings as one stream over all their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar, cast

from google.protobuf.message import Message
from trackway_common.codec import from_message

T = TypeVar("T")

PAGE_SIZE = 100


class PagedRequest(Protocol):
    """A request for one page."""

    page_size: int
    page_token: str


class PagedAnswer(Protocol):
    """One page."""

    next_page_token: str


Q = TypeVar("Q", bound=PagedRequest)
A = TypeVar("A", bound=PagedAnswer)


def read(message: Message, kind: type[T]) -> T:
    """Return a message as the dataclass of the same fields."""
    return cast("T", from_message(message, kind))


def listed(ask: Callable[[Q], A], request: Q, items: Callable[[A], Iterable[Message]], kind: type[T]) -> Iterator[T]:
    """Yield everything that a listing has; a page is fetched when it is needed."""
    request.page_size = PAGE_SIZE
    while True:
        answer = ask(request)
        for message in items(answer):
            yield read(message, kind)
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token
