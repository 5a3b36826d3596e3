"""How a statement is turned down: one sentence that says what to write instead."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable

from trackway_common.errors import CommandRejected, FieldViolation

MAX_CHARACTERS = 500


def refused(sentence: str) -> CommandRejected:
    """The error for it, on one line and of bounded length whatever it quotes."""
    sentence = textwrap.shorten(sentence, MAX_CHARACTERS, placeholder=" …")
    return CommandRejected(
        sentence, reason="SQL_REFUSED", violations=(FieldViolation(field="sql", description=sentence),)
    )


def guess(word: str, known: Iterable[str]) -> str:
    """A clause that names what was probably meant; empty when nothing comes close."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""
