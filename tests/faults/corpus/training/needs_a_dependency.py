"""Imports what nobody has installed."""

import a_distribution_that_nobody_has  # noqa: F401


def main() -> None:
    """Never called."""
