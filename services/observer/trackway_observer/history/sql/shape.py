"""Which parts a SELECT may have. What is not named here is refused, so a parser's new syntax stays out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from trackway_observer.history.sql.refusal import refused

_CLAUSES = """
    with_ expressions distinct from_ joins prewhere where group having qualify windows order limit offset
    this expression alias by_name side kind on
"""
_NODES = """
    Select Union Except Intersect Subquery With CTE Table TableAlias Final From Join Distinct
    PreWhere Where Group Cube Rollup GroupingSets Having Qualify Window WindowSpec Order Ordered WithFill Limit Offset
    Alias Aliases Column Identifier Star Literal Boolean Null Var Interval DataType DataTypeParam
    Add Sub Mul Div IntDiv Mod Neg DPipe Not Paren Tuple Bracket Slice Dot Lambda Filter
    EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Like ILike Escape Any All IgnoreNulls RespectNulls
    HexString LimitOptions Explode
    JSONPath JSONPathRoot JSONPathKey JSONPathSubscript
"""
ALLOWED_CLAUSES = frozenset(_CLAUSES.split())
ALLOWED_NODES = frozenset(_NODES.split())
_WHY: Mapping[str, str] = MappingProxyType(
    {
        "settings": "SETTINGS are not allowed; the limits of a query are fixed",
        "format": "FORMAT is not allowed; rows come back in one form",
        "into": "INTO is not allowed; rows come back to you",
        "fetch": "FETCH is not allowed; write LIMIT",
    }
)


def refuse_unknown_parts(tree: exp.Expression) -> None:
    """Refuse every construct that is not known to be harmless.

    Functions pass here: the words before brackets are judged by themselves.

    Raises:
        CommandRejected: there is one.
    """
    for node in tree.walk():
        if isinstance(node, exp.Query):
            _refuse_clauses(node)
        if not _is_known(node):
            raise refused(f"{type(node).__name__.upper()} is not allowed here: {node.sql(dialect='clickhouse')[:80]}")


def _is_known(node: exp.Expression) -> bool:
    if type(node).__name__ in ALLOWED_NODES:
        return True
    return isinstance(node, exp.Func) and not isinstance(node, exp.UDTF)


def _refuse_clauses(query: exp.Query) -> None:
    for name, value in query.args.items():
        if value and name not in ALLOWED_CLAUSES:
            raise refused(_WHY.get(name, f"{name.strip('_').upper()} is not allowed"))
