"""The command line stays quick: what its modules load when they are imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from trackway.cli.main import cli

HEAVY = {"torch", "ray", "grpc", "rich", "aiokafka", "yaml", "pydantic", "google.protobuf", "numpy"}


def _loaded(code: str) -> set[str]:
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", ["trackway", "trackway.cli.main", "trackway.cli.train", "trackway.cli.submit"])
def test_importing_a_front_module_loads_nothing_heavy(module: str) -> None:
    assert _loaded(f"import {module}") & HEAVY == set()


def test_listing_the_commands_imports_none_of_them() -> None:
    loaded = _loaded(
        "from click.testing import CliRunner; from trackway.cli.main import cli; "
        "assert CliRunner().invoke(cli, ['--help']).exit_code == 0"
    )
    assert loaded & {"trackway.cli.train", "trackway.cli.sql", "trackway.cli.dataset"} == set()


def test_every_listed_command_exists_and_begins_as_its_line_in_the_list() -> None:
    import click

    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None, name
        assert command.help, name
        assert command.help.split()[0] == cli.table[name].summary.split()[0], name
        if isinstance(command, click.Group):
            assert command.list_commands(click.Context(command)), name


def test_the_front_door_gives_the_client() -> None:
    import trackway

    assert trackway.TrackwayClient.__name__ == "TrackwayClient"
    with pytest.raises(AttributeError):
        _ = trackway.nothing_of_the_kind  # type: ignore[attr-defined]
