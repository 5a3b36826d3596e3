"""The Python client: everything that the command line does, as methods. It speaks only gRPC."""

from __future__ import annotations

from trackway.client.submission import Overrides
from trackway.client.trackway_client import TrackwayClient

__all__ = ["Overrides", "TrackwayClient"]
