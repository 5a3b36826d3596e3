"""Reads command lines as the real command line would, and runs none of them."""

from __future__ import annotations

import shlex

import click
from trackway.cli.main import cli


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
