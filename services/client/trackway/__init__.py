"""Trackway for its users: a Python client, a training SDK, a command line and a local stack.

``from trackway import TrackwayClient`` and ``import trackway.training`` are the two doors; neither loads
the other, and importing this package loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trackway.client import TrackwayClient as TrackwayClient

__all__ = ["TrackwayClient"]


def __getattr__(name: str) -> object:
    # A trainer imports trackway.training and must not pay for gRPC (PEP 562).
    if name == "TrackwayClient":
        from trackway.client import TrackwayClient

        return TrackwayClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
