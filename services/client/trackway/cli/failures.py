"""The one place where an error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trackway_common.errors import CommandRejected

OK = 0
RUN_FAILED = 1
REFUSED = 2
UNAVAILABLE = 3
BUG = 70
"""EX_SOFTWARE of sysexits.h: this program is wrong, not what was asked of it."""
INTERRUPTED = 130


@contextmanager
def told() -> Iterator[None]:
    """Run a command; whatever it raises is told on stderr and leaves as an exit code."""
    try:
        yield
        sys.stdout.flush()
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except KeyboardInterrupt:
        _say("interrupted")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader, such as head, has enough. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(OK) from None
    except Exception as error:  # the top of the process: report it and choose the exit code
        raise click.exceptions.Exit(_report(error)) from error


def _report(error: Exception) -> int:
    from trackway_common.errors import CommandRejected, TrackwayError

    match error:
        case CommandRejected():
            _say_rejected(error)
            return REFUSED
        case TrackwayError():
            _say(f"error: {error}")
            _say(_advice(str(error)))
            return UNAVAILABLE
    _say("".join(traceback.format_exception(error)).rstrip())
    _say("This is a fault of trackway, not of what you asked. Please report it with the lines above.")
    return BUG


def _advice(error: str) -> str:
    """What to look at first; the words are gRPC's own, which has no code for them."""
    if "CERTIFICATE_VERIFY_FAILED" in error or "Hostname Verification" in error:
        return (
            "The service's certificate is not trusted: TRACKWAY_RPC__CA_FILE names the authorities to check it "
            "against, and the endpoint's host must be one of its names."
        )
    if "Socket closed" in error or "Connection reset" in error:
        return (
            "It closed the connection. A service with TLS does so to a plain client, for which TRACKWAY_RPC__CA_FILE "
            "is not set, and to one that it must know, which needs TRACKWAY_RPC__CERT_FILE and __KEY_FILE."
        )
    return "Is the service up? `trackway status` shows the local stack; --endpoint host:port names another."


def _say_rejected(error: CommandRejected) -> None:
    # A message that only repeats its violations adds nothing to them.
    if not error.violations or any(violation.description not in error.message for violation in error.violations):
        _say(f"refused: {error.message}")
    for violation in error.violations:
        # A description often says its field first, so that it can stand alone.
        description = violation.description.removeprefix(f"{violation.field}: ")
        _say(f"{violation.field}: {description}")
    if error.violations:
        _say("Nothing was started. Correct what is named above and try again.")
    elif error.reason == "ALREADY_EXISTS":
        _say("Another run has this request id: leave --request-id out to submit a new one.")


def _say(line: str) -> None:
    click.echo(line, err=True)
