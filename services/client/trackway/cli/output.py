"""Prints resources: JSON and YAML whole, tables by the columns that a command names."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import click

from trackway.cli.session import JSON, TABLE, YAML
from trackway.cli.tables import Column, Details, print_details, print_table

T = TypeVar("T")


def show_list(output: str, items: Iterable[T], columns: Sequence[Column[T]], *, none: str) -> None:
    """Print resources.

    Args:
        none: what to say, beside the output, when there are none.
    """
    found = list(items)
    if not found:
        click.echo(none, err=True)
    if output == TABLE:
        print_table(columns, found)
    else:
        print_document(output, [document(item) for item in found])


def show_one(output: str, item: T, details: Details) -> None:
    """Print one resource."""
    if output == TABLE:
        print_details(details)
    else:
        print_document(output, document(item))


def print_document(output: str, value: object) -> None:
    """Print JSON or YAML."""
    if output == YAML:
        import yaml

        click.echo(yaml.safe_dump(plain(value), sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def print_stream_item(output: str, value: object) -> None:
    """Print one of many documents as it comes: a line of JSON, or a YAML document."""
    if output == JSON:
        click.echo(json.dumps(plain(value), ensure_ascii=False))
    else:
        click.echo("---")
        print_document(YAML, value)


def document(item: object) -> object:
    """A resource as JSON values."""
    from trackway_common.codec import fact_fields

    return fact_fields(item)


def plain(value: object) -> object:
    """The value as what JSON and YAML both have: no enums, no NaN or infinity (they become null)."""
    match value:
        case str():
            return str(value)
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return value
