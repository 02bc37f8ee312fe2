"""Options that several commands share, so that they are spelt and explained alike."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["json_option", "library_option"]

library_option = click.option(
    "--library",
    "library",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder with nodes/, graphs/ and judges/ of your own, searched before the standard "
    "library. Without it: the working directory, if it is one.",
)
"""Passes `library: Path | None`, for `find_library`."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
"""Passes `as_json: bool`."""
