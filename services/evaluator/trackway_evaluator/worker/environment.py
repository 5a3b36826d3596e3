"""What a try really ran on: the report whose digest stands in the result."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from trackway_common.canonical import Json, canonical_json


def environment_json() -> str:
    """Canonical JSON of interpreter, distributions, device and threads; the same on a machine that has the same."""
    return canonical_json(_report()).decode()


def _report() -> dict[str, Json]:
    report: dict[str, Json] = {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "distributions": dict(sorted(_distributions().items())),
    }
    # Only what was really loaded: a command adapter has no torch here.
    return report | _torch() if "torch" in sys.modules else report


def _torch() -> dict[str, Json]:
    import torch

    return {
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def _distributions() -> dict[str, str]:
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        # The first on the path is the one that is imported.
        found.setdefault(distribution.metadata["Name"].lower().replace("_", "-"), distribution.version)
    return found
