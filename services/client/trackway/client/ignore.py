"""Globs as .gitignore writes them (gitignore(5)).

A pattern without a slash matches a name at any depth; with one it is anchored at its folder; ``**`` spans
folders, a trailing slash means folders only, ``!`` takes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One pattern of one ignore file."""

    regex: re.Pattern[str]
    base: str
    """Folder the pattern is anchored at, relative to the root, with a trailing slash; empty for the root."""
    keeps: bool
    folders_only: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether the pattern speaks of this path, given relative to the root."""
        if self.folders_only and not is_folder:
            return False
        return path.startswith(self.base) and self.regex.fullmatch(path[len(self.base) :]) is not None


def is_ignored(rules: Iterable[Rule], path: str, *, is_folder: bool) -> bool:
    """Tell whether a path is left out; the last rule that matches decides."""
    ignored = False
    for rule in rules:
        if rule.matches(path, is_folder=is_folder):
            ignored = not rule.keeps
    return ignored


def read_rules(file: Path, base: str) -> tuple[Rule, ...]:
    """Return the rules of an ignore file; none when there is no such file."""
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, IsADirectoryError):
        return ()
    return tuple(rule for line in text.splitlines() if (rule := parse_rule(line, base)))


def parse_rule(line: str, base: str = "") -> Rule | None:
    """Return the rule of one line; None for a blank or a comment."""
    pattern = _without_trailing_spaces(line)
    if not pattern or pattern.startswith("#"):
        return None
    keeps = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    try:
        return Rule(regex=glob_regex(pattern), base=base, keeps=keeps, folders_only=folders_only)
    except re.error:  # such as [z-a]: git matches nothing with it either
        return None


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a glob, for paths relative to the glob's folder.

    Raises:
        re.error: a character class that is none.
    """
    anchored = "/" in pattern
    body = _translated(pattern.removeprefix("/"))
    return re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip("\r").rstrip(" ")
    return stripped + " " if stripped.endswith("\\") and len(stripped) < len(line) else stripped


_TOKEN = re.compile(r"(?P<class>\[[!^]?\]?[^\]]*\])|(?P<escape>\\.)|(?P<star>\*+)|(?P<one>\?)|(?P<text>.)", re.DOTALL)


def _translated(pattern: str) -> str:
    if pattern.startswith("**/"):
        return "(?:.*/)?" + _translated(pattern[3:])
    head, middle, tail = pattern.partition("/**/")
    if middle:
        return f"{_tokens(head)}/(?:.*/)?{_translated(tail)}"
    if pattern.endswith("/**"):
        return _tokens(pattern[:-3]) + "/.+"
    return _tokens(pattern)


def _tokens(pattern: str) -> str:
    return "".join(_token(match) for match in _TOKEN.finditer(pattern))


def _token(match: re.Match[str]) -> str:
    text = match.group()
    match match.lastgroup:
        case "star":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "escape":
            return re.escape(text[1:])
        case "class":
            return _character_class(text)
    return re.escape(text)


def _character_class(text: str) -> str:
    inner = text[1:-1]
    negated = inner[:1] in {"!", "^"}
    inner = inner[1:] if negated else inner
    escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner)
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
