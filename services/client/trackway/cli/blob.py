"""``trackway blob``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("digest", metavar="SHA256:HEX")
@click.option("--to", "path", type=click.Path(path_type=Path), help="Write a new file instead of printing.")
@click.option("--endpoint", metavar="HOST:PORT", help="Scheduler's address [default: the local stack's].")
@click.option("--state", type=click.Path(path_type=Path), help="State folder of the local stack.")
def blob(digest: str, path: Path | None, endpoint: str | None, state: Path | None) -> None:
    """Print the stored bytes that a fact names by digest: stacks, a spec, a code archive. They are verified."""
    from trackway.cli.session import TABLE, Session

    with Session(endpoint=endpoint, state=state, output=TABLE).connect() as client:
        content = client.blob(digest)
    if path is None:
        click.get_binary_stream("stdout").write(content)
        return
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise click.UsageError(f"{path} is there already; name a new file") from error
