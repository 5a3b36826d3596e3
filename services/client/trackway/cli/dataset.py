"""``trackway dataset``: snapshots."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli.output import document, print_document, show_list
from trackway.cli.session import TABLE, Session, common_options
from trackway.cli.tables import Column, print_details, print_table, size

if TYPE_CHECKING:
    from trackway.client.resources import Dataset
    from trackway.client.snapshot import Snapshot, SplitSummary

_COLUMNS: tuple[Column[Dataset], ...] = (
    Column("PROJECT", lambda dataset: dataset.project),
    Column("DATASET", lambda dataset: dataset.dataset),
    Column("DIGEST", lambda dataset: dataset.manifest_digest),
    Column("FILES", lambda dataset: dataset.files),
    Column("SIZE", lambda dataset: size(dataset.size_bytes)),
    Column("SPLITS", lambda dataset: ", ".join(dataset.splits)),
    Column("REGISTERED", lambda dataset: dataset.registered_at),
)
_SPLIT_COLUMNS: tuple[Column[SplitSummary], ...] = (
    Column("SPLIT", lambda split: split.name),
    Column("FILES", lambda split: split.files),
    Column("SIZE", lambda split: size(split.size_bytes)),
    Column("DIGEST", lambda split: split.digest[:19]),
)


@click.group()
def dataset() -> None:
    """Take and look at dataset snapshots."""


@dataset.command()
@click.argument("name")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--include", multiple=True, metavar="GLOB", help="Only files like this, such as '*.py'.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No files or folders like this.")
@click.option("--split", "splits", multiple=True, metavar="NAME=FRACTION", help="By path hash; train gets the rest.")
@click.option("--project", default="default", show_default=True, help="Project that the dataset belongs to.")
@common_options
def snapshot(
    session: Session,
    name: str,
    paths: tuple[Path, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    splits: tuple[str, ...],
    project: str,
) -> None:
    """Register what files are now, by digest. Nothing is copied."""
    from trackway.cli.progress import progress_bar
    from trackway.client.dataset_files import Globs
    from trackway.client.snapshot import take_snapshot
    from trackway.client.splits import parse_splits

    rule, globs = parse_splits(splits), Globs(include=include, exclude=exclude)
    with session.connect() as client:
        with progress_bar() as progress:
            taken = take_snapshot(name, paths, globs, rule, progress)
        registered = client.register_dataset(taken.manifest, project=project)
    _show(session, registered, taken)


@dataset.command()
@click.argument("name", metavar="NAME[@DIGEST]")
@click.option("--project", default="-", help="Needed where several projects have a dataset of that name.")
@common_options
def show(session: Session, name: str, project: str) -> None:
    """Show a snapshot; the newest one of its name when no digest is given.

    NAME may also be a resource name, as `trackway dataset list -o json` shows it.
    """
    with session.connect() as client:
        found = client.dataset(name if "/" in name else f"projects/{project}/datasets/{name}")
    if session.output == TABLE:
        print_details(_details(found))
    else:
        print_document(session.output, _document(found))


@dataset.command("list")
@click.option("--project", default="-", help="Only of this project.")
@common_options
def list_(session: Session, project: str) -> None:
    """List snapshots."""
    with session.connect() as client:
        found = list(client.datasets(project=project))
    if session.output == TABLE:
        show_list(
            session.output, found, _COLUMNS, none="There are no datasets; take one with `trackway dataset snapshot`."
        )
    else:
        print_document(session.output, [_document(item) for item in found])


def _show(session: Session, registered: Dataset, taken: Snapshot) -> None:
    if taken.empty_files:
        click.echo(
            f"{taken.empty_files} of the files are empty; --exclude them if they are there by mistake.", err=True
        )
    if session.output != TABLE:
        print_document(session.output, _document(registered))
        return
    print_details([*_details(registered), ("root", taken.root)])
    print_table(_SPLIT_COLUMNS, taken.splits)


def _details(dataset: Dataset) -> list[tuple[str, object]]:
    return [
        ("dataset", dataset.dataset),
        ("project", dataset.project),
        ("digest", dataset.manifest_digest),
        ("name", dataset.name),
        ("files", dataset.files),
        ("size", size(dataset.size_bytes)),
        ("splits", ", ".join(dataset.splits)),
        ("registered", dataset.registered_at),
    ]


def _document(dataset: Dataset) -> object:
    shown = document(dataclasses.replace(dataset, manifest=b""))
    assert isinstance(shown, dict)
    return {**shown, "manifest": json.loads(dataset.manifest) if dataset.manifest else None}
