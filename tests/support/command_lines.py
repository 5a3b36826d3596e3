"""Reads command lines as the real command line would, and runs none of them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from trackway.cli.main import cli

RUNBOOKS = Path(__file__).parents[2] / "docs/runbooks"


def commands_of(text: str) -> list[str]:
    """Command lines of the shell blocks of a Markdown text."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def runbook_queries() -> list[str]:
    """Every SQL query that a runbook tells to run."""
    lines = [line for book in sorted(RUNBOOKS.glob("*.md")) for line in commands_of(book.read_text())]
    return [shlex.split(line)[2] for line in lines if line.startswith("trackway sql ")]


def parse_command(line: str) -> None:
    """Parse one ``trackway …`` line against the commands and options there are.

    Raises:
        AssertionError: there is no such command, option, or argument.
    """
    program, *words = shlex.split(line)
    assert program == "trackway", line
    command: click.Command = cli
    context = click.Context(cli, info_name="trackway")
    try:
        while isinstance(command, click.Group):
            assert words, f"{line}: names no command"
            name, *words = words
            found = command.get_command(context, name)
            assert found is not None, f"{line}: there is no {name!r}"
            command, context = found, click.Context(found, info_name=name, parent=context)
        command.make_context(command.name, words)
    except click.ClickException as error:
        raise AssertionError(f"{line}: {error.format_message()}") from error
