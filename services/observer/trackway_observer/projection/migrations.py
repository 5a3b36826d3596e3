"""Bring a database to the schema of this build: numbered SQL files, each applied once, never edited after."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from trackway_common.clickhouse import ClickHouse
from trackway_common.errors import TrackwayError
from trackway_common.settings import ClickHouseSettings

log = logging.getLogger(__name__)

_FILE = re.compile(r"(\d{3})_(\w+)\.sql")
_END_OF_STATEMENT = re.compile(r";\s*(?:\n|\Z)")
_RECORD = """
create table if not exists schema_migrations (
  number     UInt32,
  name       String,
  checksum   String,
  applied_at DateTime64(6, 'UTC') default now64(6)
) engine = ReplacingMergeTree order by number
"""


class SchemaConflict(TrackwayError):
    """The database was made by other migrations than this build's; nothing is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file. Its statements bear repetition: a crash in its middle runs all of them again."""

    number: int
    name: str
    checksum: str
    statements: tuple[str, ...]


def load_migrations() -> tuple[Migration, ...]:
    """This build's migrations, in order."""
    folder = resources.files("trackway_observer") / "migrations"
    named = sorted((item.name, item) for item in folder.iterdir() if _FILE.fullmatch(item.name))
    return tuple(_migration(name, item.read_text(encoding="utf-8")) for name, item in named)


async def create_database(settings: ClickHouseSettings) -> None:
    """Make the database if it is not there.

    Raises:
        Unavailable: ClickHouse is away.
    """
    server = ClickHouse(settings.model_copy(update={"database": "default"}), threads=1)
    try:
        await server.command(f"create database if not exists `{settings.database}`")
    finally:
        await server.close()


async def migrate(database: ClickHouse, migrations: Iterable[Migration]) -> tuple[Migration, ...]:
    """Apply what is missing and return it.

    Raises:
        SchemaConflict: an applied migration differs from this build's, or is newer than all of them.
        Unavailable: ClickHouse is away; call again.
    """
    await database.command(_RECORD)
    recorded = await database.rows("select number, checksum from schema_migrations final")
    applied = {int(number): str(checksum) for number, checksum in recorded}
    known = tuple(migrations)
    _check(applied, known)
    missing = tuple(migration for migration in known if migration.number not in applied)
    for migration in missing:
        await _apply(database, migration)
    return missing


def _check(applied: dict[int, str], known: tuple[Migration, ...]) -> None:
    by_number = {migration.number: migration for migration in known}
    for number, checksum in sorted(applied.items()):
        migration = by_number.get(number)
        if migration is None:
            raise SchemaConflict(f"the database has migration {number}, which this build doesn't know: run a newer one")
        if migration.checksum != checksum:
            raise SchemaConflict(
                f"migration {migration.name} was edited after it was applied: restore it and add a new one instead"
            )


async def _apply(database: ClickHouse, migration: Migration) -> None:
    for statement in migration.statements:
        await database.command(statement)
    row = ((migration.number,), (migration.name,), (migration.checksum,))
    await database.insert("schema_migrations", ("number", "name", "checksum"), row)
    log.info("migration applied", extra={"migration": migration.name, "database": database.database})


def _migration(file_name: str, text: str) -> Migration:
    match = _FILE.fullmatch(file_name)
    assert match is not None
    statements = (part.strip() for part in _END_OF_STATEMENT.split(text))
    return Migration(
        number=int(match[1]),
        name=file_name.removesuffix(".sql"),
        checksum=hashlib.sha256(text.encode()).hexdigest(),
        statements=tuple(statement for statement in statements if statement),
    )
