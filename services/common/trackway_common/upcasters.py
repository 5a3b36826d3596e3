"""Lift facts of older schemas to today's meaning.

A changed meaning is a new message; the old one stays in the .proto for ever and gets an entry here.
v1 is the first release, so nothing is lifted yet: the golden log segment of v1 keeps it honest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from google.protobuf.message import Message

UPCASTERS: Mapping[str, Callable[[Message], Message]] = {}
"""Name of the retired message → function to the one that replaced it."""


def upcast(message: Message, upcasters: Mapping[str, Callable[[Message], Message]] = UPCASTERS) -> Message:
    """Lift a message as often as needed; one that is of today comes back as it is."""
    while lift := upcasters.get(message.DESCRIPTOR.name):
        message = lift(message)
    return message
