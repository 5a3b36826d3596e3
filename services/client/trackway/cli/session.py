"""Options that every command has, and the client and output made from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click

if TYPE_CHECKING:
    from trackway.client import TrackwayClient

P = ParamSpec("P")

TABLE, JSON, YAML = "table", "json", "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What the common options said."""

    endpoint: str | None
    state: Path | None
    output: str

    def connect(self) -> TrackwayClient:
        """Return a client; use it in a with statement."""
        from trackway.client import TrackwayClient

        return TrackwayClient(self.endpoint, self.state)


def options(*formats: str) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[..., None]]:
    """Give a command --endpoint, --state and -o, and pass them as its first argument.

    Args:
        formats: what -o takes; the first is the default.
    """

    def decorate(command: Callable[Concatenate[Session, P], None]) -> Callable[..., None]:
        @click.option("--endpoint", metavar="HOST:PORT", help="Scheduler's address [default: the local stack's].")
        @click.option("--state", type=click.Path(path_type=Path), help="State folder of the local stack.")
        @click.option("-o", "--output", type=click.Choice(formats), default=formats[0], help="How to print.")
        @functools.wraps(command)
        def with_session(
            endpoint: str | None, state: Path | None, output: str, *args: P.args, **kwargs: P.kwargs
        ) -> None:
            command(Session(endpoint=endpoint, state=state, output=output), *args, **kwargs)

        return with_session

    return decorate


common_options = options(TABLE, JSON, YAML)
