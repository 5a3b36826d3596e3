"""Prints what an interpreter really holds, as one JSON object; run by path with the trainer's own Python.

Standard library only, and it imports none of what it finds: a broken torch must not stop the report.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import runpy
import sys
from pathlib import Path


def environment() -> dict[str, object]:
    """Distributions with versions, Python, torch with its CUDA, driver, platform and host."""
    torch = _torch_version_module()
    return {
        "python_version": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "executable": sys.executable,
        "distributions": _distributions(),
        "torch_version": str(torch.get("__version__", "")),
        "cuda_version": torch.get("cuda"),
        "driver_version": _driver_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "host": platform.node(),
        "cpus": len(os.sched_getaffinity(0)),
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    }


def _distributions() -> dict[str, str]:
    found = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        # The first on the path is the one that imports; a later one of the same name is shadowed.
        if name and name.lower() not in found:
            found[name.lower()] = distribution.version
    return dict(sorted(found.items()))


def _torch_version_module() -> dict[str, object]:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return {}
    version = Path(spec.origin).with_name("version.py")
    return runpy.run_path(str(version)) if version.exists() else {}


def _driver_version() -> "str | None":
    try:
        first = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    return first.partition("Kernel Module")[2].split()[0] if "Kernel Module" in first else first


if __name__ == "__main__":
    sys.stdout.write(json.dumps(environment()) + "\n")
