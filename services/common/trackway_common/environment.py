"""A process's settings from its environment; mistakes in it by the variable's name, never with its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from trackway_common.errors import CommandRejected
from trackway_common.settings import LogSettings

S = TypeVar("S", bound=LogSettings)


def read_settings(kind: type[S]) -> S:
    """Return the settings that the environment holds.

    Raises:
        CommandRejected: variables are missing, unknown or wrong; names every one.
    """
    try:
        return kind()  # type: ignore[call-arg] # fields come from the environment
    except ValidationError as error:
        mistakes = "; ".join(said for mistake in error.errors() for said in _mistakes(kind, mistake))
    except SettingsError as error:
        mistakes = str(error)
    # Not chained: a validation error shows what was given, which may be a password under a misspelt name.
    raise CommandRejected(f"the environment is no good: {mistakes}", reason="SETTINGS")


def _mistakes(kind: type[LogSettings], mistake: Mapping[str, Any]) -> Iterator[str]:
    where = tuple(str(part) for part in mistake["loc"])
    match mistake["type"]:
        case "missing":
            yield from (f"{name} is not set" for name in _required(kind, where))
        case "extra_forbidden":
            yield f"{_variable(where)} is no setting; check its spelling"
        case "value_error" if len(where) == 1:
            # About a whole block; it names the variables itself.
            yield str(mistake["ctx"]["error"])
        case "value_error":
            yield f"{_variable(where)}: {mistake['ctx']['error']}"
        case _:
            yield f"{_variable(where)}: {mistake['msg']}"


def _required(kind: type[LogSettings], where: tuple[str, ...]) -> Iterator[str]:
    """Variables that must be set: of a block that is missing as a whole, those without a default."""
    block = kind.model_fields[where[0]].annotation
    if len(where) == 1 and isinstance(block, type) and issubclass(block, BaseModel):
        for name, field in block.model_fields.items():
            if field.is_required():
                yield _variable((*where, name))
    else:
        yield _variable(where)


def _variable(where: tuple[str, ...]) -> str:
    return "TRACKWAY_" + "__".join(where).upper()
