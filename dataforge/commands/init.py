"""`dataforge init`: a library of one's own, small, complete and running, to be changed from there.

What it writes are real files, kept in `new_library/` beside this one, so that they are linted,
type-checked and built as a graph like any other content.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from dataforge.errors import UsageError

__all__ = ["command"]

_TEMPLATE = Path(__file__).parent / "new_library"


@click.command(name="init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def command(directory: Path) -> None:
    """Begins a library of your own in DIR, which must be new or empty.

    It holds one step written as data, one written in Python, a graph that joins them, a few
    passages and a README that explains each; it runs as it stands.

    \b
    Example:
      dataforge init my_lib
      cd my_lib
      dataforge check summaries
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory}: is a file; give the name of a new folder")
    if directory.is_dir() and any(directory.iterdir()):
        raise UsageError(
            f"{directory}: is not empty; give the name of a new folder, so that nothing of yours "
            f"is overwritten"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{directory}: no folder can be made there ({error.strerror}); give another name"
        ) from None
    shutil.copytree(
        _TEMPLATE, directory, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            click.echo(f"  wrote {path}")
    click.echo(f"\nNext:\n  cd {directory}\n  dataforge check summaries\n  less README.md")
