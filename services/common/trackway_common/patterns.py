"""Regular expressions that users write: RE2, so that none of them takes for ever."""

from __future__ import annotations

from typing import Any

import re2

MAX_PATTERN_CHARACTERS = 1_000
MAX_MEMORY_BYTES = 1 << 20
"""Of one compiled expression; also what bounds ``(a{1000}){1000}``."""


class PatternInvalid(ValueError):
    """It is no RE2 expression."""


class Pattern:
    """A compiled expression; searching takes time linear in the text."""

    def __init__(self, expression: str) -> None:
        """Compile it.

        Raises:
            PatternInvalid: with what is wrong.
        """
        if len(expression) > MAX_PATTERN_CHARACTERS:
            raise PatternInvalid(f"has {len(expression)} characters; at most {MAX_PATTERN_CHARACTERS}")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_MEMORY_BYTES
        try:
            self._compiled: Any = re2.compile(expression, options)
        except re2.error as error:
            raise PatternInvalid(_text(error)) from error

    def found_in(self, text: str) -> bool:
        """Tell whether it matches anywhere in the text."""
        return self._compiled.search(text) is not None


def _text(error: Exception) -> str:
    said = error.args[0] if error.args else str(error)
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
