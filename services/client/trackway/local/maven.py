"""Kafka's jars, resolved by Maven once a machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import platformdirs
from trackway_common.errors import Unavailable

KAFKA_VERSION = "4.3.1"
"""Of ``deploy/kafka/pom.xml``."""
LIBS_VARIABLE = "TRACKWAY_KAFKA_LIBS"
RESOLVE_TIMEOUT_S = 300.0
_ERROR_LINES = 15
_DEBIAN_PACKAGES = {"java": "openjdk-17-jre-headless", "mvn": "maven"}


def require_tool(name: str) -> str:
    """Return the tool's path.

    Raises:
        Unavailable: it is not installed; says what brings it.
    """
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} was not found; on Debian `apt-get install {_DEBIAN_PACKAGES[name]}` brings it")
    return found


def libs_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the jars are or will be: $TRACKWAY_KAFKA_LIBS, else the user's cache."""
    if chosen := environ.get(LIBS_VARIABLE):
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("trackway") / f"kafka-{KAFKA_VERSION}"


def has_jars(folder: Path) -> bool:
    """Tell whether the folder holds Kafka; it appears there as a whole or not at all."""
    return any(folder.glob("kafka_2.13-*.jar"))


def ensure_jars(folder: Path) -> None:
    """Have Maven copy the jars into the folder unless they are there; two at once do it once.

    Raises:
        Unavailable: Maven is missing or failed.
    """
    if has_jars(folder):
        return
    maven = require_tool("mvn")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not has_jars(folder):
            _resolve(maven, folder)


def deploy_file(name: str) -> Path:
    """Return a file of ``deploy/kafka``: packaged with the wheel, or from the checkout."""
    packaged = Path(str(files("trackway.local"))) / "kafka_deploy" / name
    if packaged.exists():
        return packaged
    return Path(__file__).resolve().parents[4] / "deploy" / "kafka" / name


def _resolve(maven: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        # Maven writes beside the pom, which may lie in a read-only installation.
        pom = Path(scratch) / "pom.xml"
        shutil.copyfile(deploy_file("pom.xml"), pom)
        jars = Path(scratch) / "jars"
        _run_maven(maven, pom, jars)
        jars.rename(folder)


def _run_maven(maven: str, pom: Path, jars: Path) -> None:
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}")
    try:
        done = subprocess.run(
            (maven, "-q", "-B", "-f", str(pom), *goal),
            capture_output=True,
            text=True,
            timeout=RESOLVE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Maven did not resolve Kafka's jars in {RESOLVE_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0 or not has_jars(jars):
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_ERROR_LINES:])
        raise Unavailable(f"Maven could not resolve Kafka's jars (exit {done.returncode}):\n{tail}")
