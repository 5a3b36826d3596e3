"""The run's code archive, unpacked for this try, and functions found in it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from trackway_common.canonical import digest_bytes
from trackway_common.code_archive import extract
from trackway_common.errors import CommandRejected

CONFIG_INVALID = "CONFIG_INVALID"


def unpack(archive: bytes, folder: Path) -> None:
    """Unpack the archive and let its modules be imported.

    Raises:
        CommandRejected: no tar, or one with links or paths that leave the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    extract(archive, folder)
    sys.path.insert(0, str(folder))


def load_function(reference: str) -> Callable[..., Any]:
    """Import ``module:function``.

    Raises:
        CommandRejected: there is no such module or function, or importing it failed.
    """
    module = _module(reference)
    function = getattr(module, reference.partition(":")[2], None)
    if not callable(function):
        raise CommandRejected(f"{reference} is no function; write module:function", reason=CONFIG_INVALID)
    found: Callable[..., Any] = function
    return found


def source_digest(reference: str) -> str:
    """Digest of the source file that ``module:function`` was really imported from."""
    path = _module(reference).__file__
    if path is None:
        raise CommandRejected(f"{reference} has no source file", reason=CONFIG_INVALID)
    return digest_bytes(Path(path).read_bytes())


def _module(reference: str) -> ModuleType:
    name = reference.partition(":")[0]
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever the user's module raises while it is imported
        raise CommandRejected(
            f"{name} can't be imported: {type(error).__name__}: {error}", reason=CONFIG_INVALID
        ) from error
