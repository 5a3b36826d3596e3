"""Migrations are numbered, whole, and refuse a database of another build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from trackway_observer.projection.migrations import Migration, SchemaConflict, load_migrations, migrate


class FakeDatabase:
    """Remembers statements and which migrations were recorded."""

    database = "fake"

    def __init__(self, recorded: Sequence[tuple[int, str]] = ()) -> None:
        self.recorded = list(recorded)
        self.statements: list[str] = []

    async def command(self, statement: str) -> None:
        self.statements.append(statement)

    async def rows(self, _: str) -> Sequence[tuple[int, str]]:
        return self.recorded

    async def insert(self, table: str, columns: Sequence[str], data: Sequence[Sequence[Any]]) -> None:
        assert (table, columns) == ("schema_migrations", ("number", "name", "checksum"))
        self.recorded.append((data[0][0], data[2][0]))


def test_numbers_begin_at_one_and_have_no_gap() -> None:
    assert [m.number for m in load_migrations()] == list(range(1, len(load_migrations()) + 1))


_REPEATABLE = ("create table if not exists ", "create or replace view ", "drop view if exists ")


def test_statements_bear_repetition() -> None:
    for migration in load_migrations():
        for statement in migration.statements:
            code = "\n".join(line for line in statement.splitlines() if not line.startswith("--")).strip()
            if code.startswith("alter table "):
                changes = [line.strip() for line in code.splitlines()[1:]]
                assert all(change.startswith("add column if not exists ") for change in changes), code
            else:
                assert code.startswith(_REPEATABLE), code[:60]


async def test_each_is_applied_once() -> None:
    database = FakeDatabase()
    applied = await migrate(database, load_migrations())  # type: ignore[arg-type]  # a fake of what is used of it
    again = await migrate(database, load_migrations())  # type: ignore[arg-type]
    assert [m.number for m in applied] == [m.number for m in load_migrations()]
    assert again == ()


async def test_an_edited_migration_is_refused_and_nothing_is_changed() -> None:
    first, *rest = load_migrations()
    database = FakeDatabase([(first.number, "another checksum")])
    with pytest.raises(SchemaConflict, match="was edited"):
        await migrate(database, [first, *rest])  # type: ignore[arg-type]
    assert len(database.statements) == 1


async def test_a_database_of_a_newer_build_is_refused() -> None:
    known = load_migrations()
    newer: Migration = replace(known[-1], number=99)
    database = FakeDatabase([(m.number, m.checksum) for m in (*known, newer)])
    with pytest.raises(SchemaConflict, match="migration 99"):
        await migrate(database, known)  # type: ignore[arg-type]
