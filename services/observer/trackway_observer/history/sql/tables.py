"""Which tables a statement reads: contract views, and what its own WITH names."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from trackway_observer.history.sql.refusal import guess, refused

_PLAIN_TABLE = frozenset({"this", "alias", "joins"})


def refuse_foreign_tables(tree: exp.Expression, views: Collection[str]) -> None:
    """Refuse every table that is neither a view nor a WITH query in reach.

    Raises:
        CommandRejected: there is one.
    """
    for node in tree.walk():
        match node:
            case exp.From():
                _refuse_source(node.this)
            case exp.Join() if node.args.get("kind") != "ARRAY":
                _refuse_source(node.this)
            case exp.Table():
                _refuse_table(node, views)
            case exp.In():
                _refuse_set(node, views)


def _refuse_source(source: exp.Expression) -> None:
    if not isinstance(source, exp.Table | exp.Final | exp.Subquery):
        raise refused(f"{source.sql(dialect='clickhouse')[:80]} is not allowed after FROM; name a view")


def _refuse_table(table: exp.Table, views: Collection[str]) -> None:
    if table.args.get("db") or table.args.get("catalog"):
        raise refused(f"{table.sql(dialect='clickhouse')} names a database; write the view's name alone")
    extra = [name for name, value in table.args.items() if value and name not in _PLAIN_TABLE]
    if extra or not isinstance(table.this, exp.Identifier):
        raise refused(f"{table.sql(dialect='clickhouse')[:80]} is not allowed after FROM; name a view")
    _refuse_name(table.name, table, views)


def _refuse_set(condition: exp.In, views: Collection[str]) -> None:
    """ClickHouse takes a bare name behind IN as a table's."""
    listed = condition.args.get("expressions") or []
    alone = condition.args.get("field") or (listed[0] if len(listed) == 1 else None)
    while isinstance(alone, exp.Paren | exp.Tuple):
        alone = alone.this if isinstance(alone, exp.Paren) else _only(alone)
    if isinstance(alone, exp.Column | exp.Dot | exp.Identifier):
        if not isinstance(alone, exp.Column) or alone.args.get("table"):
            named = alone.sql(dialect="clickhouse")
            raise refused(f"IN takes {named} for a table's name; write a list of values or a SELECT in brackets")
        _refuse_name(alone.name, condition, views)


def _only(group: exp.Tuple) -> exp.Expression | None:
    return group.expressions[0] if len(group.expressions) == 1 else None


def _refuse_name(name: str, where: exp.Expression, views: Collection[str]) -> None:
    if name not in views and name not in set(_queries_in_reach(where)):
        raise refused(f"there is no view {name}{guess(name, views) or '; the views are ' + ', '.join(sorted(views))}")


def _queries_in_reach(node: exp.Expression) -> Iterator[str]:
    """Names of the WITH queries that a place sees: those of every query around it, before its own."""
    inside: exp.CTE | None = None
    came_from: exp.Expression | None = None
    here: exp.Expression | None = node
    while here is not None:
        if isinstance(here, exp.CTE):
            inside = here
        elif isinstance(here, exp.With):
            yield from _names(here, until=inside)
        elif (with_ := here.args.get("with_")) is not None and with_ is not came_from:
            yield from _names(with_, until=None)
        came_from, here = here, here.parent


def _names(with_: exp.With, until: exp.CTE | None) -> Iterator[str]:
    for query in with_.expressions:
        if query is until:
            return
        # WITH 1 AS x names a value, which FROM x would not find.
        if not query.args.get("scalar") and isinstance(query.this, exp.Query):
            yield query.alias
