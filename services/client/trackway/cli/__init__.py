"""The command line. Each command shows what one or two calls of ``TrackwayClient`` answer.

``trackway --help`` must be quick: modules here import click and the standard library when they are loaded,
and everything else inside the commands.
"""
