"""Replacing a file in one step, so that no reader and no kill ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dataforge.errors import RunError

__all__ = ["replace_file"]


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Has `write` make a file beside `path`, then puts it in `path`'s place.

    On any failure `path` is as it was and nothing is left beside it. RunError if the disk refuses.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(beside)
        with beside.open("rb") as made:
            os.fsync(made.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        why = error.strerror or error
        raise RunError(f"{path}: cannot be written ({why}); what was there is kept") from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
