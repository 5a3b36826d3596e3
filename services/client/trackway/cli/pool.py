"""``trackway pool``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trackway.cli.output import show_list
from trackway.cli.session import Session, common_options
from trackway.cli.tables import Column, size

if TYPE_CHECKING:
    from trackway.client.resources import Pool

_COLUMNS: tuple[Column[Pool], ...] = (
    Column("POOL", lambda pool: pool.name.removeprefix("pools/")),
    Column("REACHABLE", lambda pool: pool.reachable),
    Column("CLASSES", lambda pool: ", ".join(offer.compute_class for offer in pool.offers)),
    Column("CPUS FREE", lambda pool: f"{pool.cpus_free:g} of {pool.cpus:g}"),
    Column("ACCELERATORS FREE", lambda pool: f"{pool.accelerators_free} of {pool.accelerators}"),
    Column("MEMORY", lambda pool: size(pool.memory_bytes)),
    Column("ATTEMPTS", lambda pool: pool.running_attempts),
    Column("PYTHON", lambda pool: pool.python_version),
)


@click.group()
def pool() -> None:
    """Look at pools and what they offer."""


@pool.command("list")
@common_options
def list_(session: Session) -> None:
    """List pools."""
    with session.connect() as client:
        show_list(session.output, client.pools(), _COLUMNS, none="No pool is known; is a trainer-agent running?")
