"""Runs the command line in this process against a fake Trackway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from trackway.cli.main import cli

from tests.integration.fake_trackway import FakeTrackway

RUN = "019a0000-0000-7000-8000-000000000001"
OTHER = "019b0000-0000-7000-8000-000000000002"
SPEC = b"project: demo\nmodel_family: tiny\n"


@dataclass
class CommandLine:
    """``trackway`` with the endpoint of a fake."""

    fake: FakeTrackway

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, [*arguments, "--endpoint", self.fake.endpoint], prog_name="trackway")

    def json(self, *arguments: str) -> Any:
        """What a command that succeeds prints with -o json."""
        result = self(*arguments, "-o", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def fake() -> Iterator[FakeTrackway]:
    """A fake that serves."""
    served = FakeTrackway()
    served.start()
    yield served
    served.stop()


@pytest.fixture
def trackway(fake: FakeTrackway) -> CommandLine:
    """The command line against the fake."""
    return CommandLine(fake)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A run spec with a code folder and a pack beside it."""
    folder = tmp_path / "code"
    (folder / "packs").mkdir(parents=True)
    (folder / "run.yaml").write_bytes(SPEC)
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "packs" / "tiny.yaml").write_text("kind: EvaluationPack\n")
    return folder / "run.yaml"
