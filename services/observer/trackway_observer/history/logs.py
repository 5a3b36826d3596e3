"""What ranks printed, read page by page, so that a long log needs little memory anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from trackway_observer.history.reader import ReadModel

PAGE = 2_000
_QUERY = """
select
  toUnixTimestamp64Micro(at) as at_us, rank, epoch, record, toUnixTimestamp64Milli(at), stream, step, toValidUTF8(text)
from logs
where run_id = {run:String} and attempt = {attempt:UInt32} and ({any_rank:Bool} or rank = {rank:UInt32})
  and (at_us, rank, epoch, record) > ({at_us:Int64}, {after_rank:Int64}, {epoch:UInt32}, {record:UInt64})
order by at_us, rank, epoch, record
limit {limit:UInt32}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that a rank printed."""

    attempt: int
    rank: int
    at_ms: int
    stream: str
    text: str
    step: int


async def log_lines(
    database: ReadModel, run_id: str, attempt: int, rank: int | None, *, page: int = PAGE
) -> AsyncIterator[LogLine]:
    """Yield an attempt's lines in the order of their times, each rank's in its own order where times are equal.

    Raises:
        Unavailable: ClickHouse is away.
    """
    which = {"run": run_id, "attempt": attempt, "any_rank": rank is None, "rank": rank or 0, "limit": page}
    rows: Sequence[Sequence[Any]] = [(-1, -1, 0, 0)]
    while rows:
        at_us, after_rank, epoch, record = rows[-1][:4]
        place = {"at_us": at_us, "after_rank": after_rank, "epoch": epoch, "record": record}
        rows = await database.rows(_QUERY, which | place)
        for row in rows:
            yield LogLine(attempt=attempt, rank=row[1], at_ms=row[4], stream=row[5], step=row[6], text=row[7])
