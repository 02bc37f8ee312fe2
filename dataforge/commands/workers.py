"""`dataforge workers`: endpoints that join and leave a model while runs use it."""

from __future__ import annotations

from pathlib import Path

import click

from dataforge.errors import InputError

__all__ = ["command"]

_file_option = click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("workers.txt"),
    show_default=True,
    help="The file of workers that runs watch.",
)


@click.group(name="workers")
def command() -> None:
    """Adds endpoints to a file of workers, takes them out, or lists them.

    A run given the file as a model (--model answerer=workers:workers.txt) looks at it every second:
    a worker that is added is asked from the next call on, one that is taken out is asked nothing
    more and finishes what it has.

    \b
    Examples:
      dataforge workers add http://10.0.0.7:8000/v1#hermes-4-70b
      dataforge workers list
      dataforge workers remove http://10.0.0.7:8000/v1
    """


@command.command(name="add")
@click.argument("url", metavar="URL#NAME")
@_file_option
def add(url: str, file: Path) -> None:
    """Adds an endpoint, as in http://10.0.0.7:8000/v1#hermes-4-70b?share=2."""
    from dataforge.models.workers import add_worker, read_workers

    if not file.parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.parent}; make it first")
    added = add_worker(file, url)
    click.echo(f"{'added' if added else 'was there'}: {url}")
    click.echo(f"{file}: {len(read_workers(file))} workers")


@command.command(name="remove")
@click.argument("url")
@_file_option
def remove(url: str, file: Path) -> None:
    """Takes out an endpoint, by its whole spec or by its address alone."""
    from dataforge.models.workers import read_workers, remove_worker

    if not remove_worker(file, url):
        listed = ", ".join(read_workers(file)) or "none"
        raise InputError(f"{file}: there is no worker {url}; there are {listed}")
    click.echo(f"removed: {url}")
    click.echo(f"{file}: {len(read_workers(file))} workers")


@command.command(name="list")
@_file_option
def listed(file: Path) -> None:
    """Lists the endpoints, one a line."""
    from dataforge.models.workers import read_workers

    for spec in read_workers(file):
        click.echo(spec)
