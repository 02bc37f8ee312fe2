"""Options that several commands share, so that they are spelt and explained alike."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click

__all__ = ["door", "json_option", "library_option", "span"]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def span(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Seconds of a span of time such as 90s, 15m or 2h; an option's callback."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", value.strip())
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(
            f"{value!r} is no span of time; write 90s, 15m, 2h or 1d", ctx, param
        )
    return float(found[1]) * _SECONDS[found[2]]


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


def door() -> str:
    """How the user called this program, for lines to be copied."""
    script = Path(sys.argv[0])
    return f"python {shlex.quote(str(script))}" if script.suffix == ".py" else "dataforge"
