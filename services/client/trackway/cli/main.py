"""``trackway``: the commands, and the process around them."""

from __future__ import annotations

import os
from typing import Any

import click

from trackway.cli.failures import told
from trackway.cli.lazy import LazyCommand, LazyGroup


class _Root(LazyGroup):
    table = {
        "train": LazyCommand("trackway.cli.train:train", "Submit, watch, stop and release runs."),
        "attempt": LazyCommand("trackway.cli.attempt:attempt", "Look at attempts."),
        "explain": LazyCommand("trackway.cli.explain:explain", "Explain why an attempt ended as it did."),
        "dataset": LazyCommand("trackway.cli.dataset:dataset", "Take and look at dataset snapshots."),
        "checkpoint": LazyCommand("trackway.cli.checkpoint:checkpoint", "Look at and verify checkpoints."),
        "evaluation": LazyCommand("trackway.cli.evaluation:evaluation", "Look at evaluations."),
        "pool": LazyCommand("trackway.cli.pool:pool", "Look at pools and what they offer."),
        "blob": LazyCommand("trackway.cli.blob:blob", "Print stored bytes by their digest."),
        "log": LazyCommand("trackway.cli.log:log", "Copy the log into a folder, check and read it."),
        "sql": LazyCommand("trackway.cli.sql:sql", "Run one SELECT over the read model."),
        "up": LazyCommand("trackway.cli.local:up", "Start a local stack."),
        "down": LazyCommand("trackway.cli.local:down", "Stop the local stack."),
        "status": LazyCommand("trackway.cli.local:status", "Show how each part of the local stack is."),
        "logs": LazyCommand("trackway.cli.local:logs", "Print the log of a part of the local stack."),
    }

    def invoke(self, ctx: click.Context) -> Any:
        with told():
            return super().invoke(ctx)


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trackway", message="trackway %(version)s")
def cli() -> None:
    """Train models on a cluster and find out why they failed.

    \b
    Exit codes: 0 ok, 1 the run failed, 2 wrong usage or refused, 3 a service is unavailable.
    """


def main() -> None:
    """Entry point of the ``trackway`` script."""
    # no-color.org; whether stdout is a terminal is click's and rich's business.
    cli(prog_name="trackway", color=False if os.environ.get("NO_COLOR") else None)
