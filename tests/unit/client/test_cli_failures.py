"""Every error's message and exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from trackway.cli.failures import told
from trackway_common.errors import CommandRejected, CorruptLog, Fenced, FieldViolation, NotFound, Unavailable

VIOLATION = FieldViolation(field="seed", description="'x' is no integer; write a number")


def _code(error: BaseException) -> int:
    with pytest.raises(click.exceptions.Exit) as left, told():
        raise error
    return left.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (CommandRejected("no"), 2, ["refused: no"]),
        (NotFound("no such run"), 2, ["refused: no such run"]),
        (CommandRejected("1 input is wrong", violations=(VIOLATION,)), 2, ["refused: 1 input", "seed: 'x' is no"]),
        (Unavailable("nobody answers"), 3, ["error: nobody answers", "trackway status"]),
        (
            Unavailable("last error: UNAVAILABLE: ipv4:1.2.3.4:1: Socket closed"),
            3,
            ["TRACKWAY_RPC__CA_FILE is not set"],
        ),
        (Unavailable("OPENSSL_internal:CERTIFICATE_VERIFY_FAILED"), 3, ["TRACKWAY_RPC__CA_FILE names"]),
        (Fenced("another scheduler"), 3, ["error: another scheduler"]),
        (CorruptLog("hole"), 3, ["error: hole"]),
        (KeyboardInterrupt(), 130, ["interrupted"]),
        (ZeroDivisionError("bug"), 70, ["ZeroDivisionError: bug", "fault of trackway"]),
    ],
)
def test_codes(error: BaseException, code: int, says: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _code(error) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    for words in says:
        assert words in printed.err


def test_a_message_that_repeats_its_violation_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert _code(CommandRejected(f"seed {VIOLATION.description}", violations=(VIOLATION,))) == 2
    assert capsys.readouterr().err.count("no integer") == 1


@pytest.mark.parametrize("error", [click.UsageError("usage"), click.exceptions.Exit(1)])
def test_what_click_handles_is_left_to_it(error: Exception) -> None:
    def run(raises: Callable[[], None]) -> None:
        with told():
            raises()

    def raises() -> None:
        raise error

    with pytest.raises(type(error)):
        run(raises)


def test_a_reader_that_stops_early_is_no_error() -> None:
    code = (
        "import click, sys\nfrom trackway.cli.failures import told\n"
        "@click.command()\ndef many():\n    with told():\n        [click.echo('x' * 1000) for _ in range(10000)]\n"
        "many()"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.readline()
    writer.stdout.close()
    assert (writer.wait(20), writer.stderr.read()) == (0, b"")
    writer.stderr.close()
