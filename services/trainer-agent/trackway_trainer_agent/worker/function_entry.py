"""Runs ``package.module:function`` of the user's code as the trainer: ``python -m …function_entry module:function``.

Errors while importing the user's module are recorded like those while running it.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from trackway_common.rank_protocol.error_file import install_excepthook


class EntrypointInvalid(Exception):
    """The entry point names nothing that can be called."""

    trackway_reason = "CONFIG_INVALID"


def main() -> None:
    """Call the function named by the first argument; its return value is ignored."""
    error_file = os.environ.get("TRACKWAY_ERROR_FILE")
    if error_file:
        install_excepthook(Path(error_file), lambda: None)
    module_name, _, function_name = sys.argv.pop(1).partition(":")
    function = getattr(_module(module_name), function_name, None)
    if not callable(function):
        raise EntrypointInvalid(f"{module_name} has no function {function_name!r}; write module:function")
    function()


def _module(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise EntrypointInvalid(f"the code archive has no module {name!r}: {error}") from error
        raise


if __name__ == "__main__":
    main()
