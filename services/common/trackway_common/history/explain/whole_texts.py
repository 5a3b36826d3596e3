"""Evidence that was too long for its fact: which blobs hold it, and as much of them as an explanation shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trackway_common.errors import TrackwayError
from trackway_common.history.explain.subject import newest_begun
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.receipt.outcome_columns import ruling_of

MOST_BLOBS = 3
SHOWN_LINES, SHOWN_COLUMNS = 40, 200
_NOT_TEXT = b"\x00"


def evidence_blobs(attempt: AttemptHistory) -> tuple[str, ...]:
    """Digests of what an attempt's evidence names, such as stacks; the first few."""
    said, ended = ruling_of(attempt), attempt.ended
    evidence = said.evidence if said else ended.evidence if ended else ()
    return tuple(dict.fromkeys(e.blob_digest for e in evidence if e.blob_digest))[:MOST_BLOBS]


def whole_texts(history: RunHistory, number: int | None, blob: Callable[[str], bytes]) -> Mapping[str, str]:
    """Text by digest, of the attempt that is explained; what can't be had now is only named by its digest.

    Args:
        history: of the run.
        number: of the attempt; None: the newest.
        blob: gives the bytes of a digest.
    """
    attempt = newest_begun(history) if number is None else history.attempt(number)
    found: dict[str, str] = {}
    for digest in evidence_blobs(attempt) if attempt else ():
        try:
            found[digest] = shown(blob(digest))
        except TrackwayError:
            continue
    return found


def shown(data: bytes) -> str:
    """The first lines of a text; empty for what is none."""
    if _NOT_TEXT in data[:4096]:
        return ""
    lines = data[: SHOWN_LINES * SHOWN_COLUMNS * 4].decode(errors="replace").splitlines()
    more = ["…"] if len(lines) > SHOWN_LINES else []
    return "\n".join([line[:SHOWN_COLUMNS] for line in lines[:SHOWN_LINES]] + more)
