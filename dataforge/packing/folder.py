"""Putting a whole folder in place in one step, so that nobody ever reads half of one.

A folder that is there is replaced only if a marker file shows that DataForge made it; anything else
is somebody's work and is left alone. A kill between the last two renames leaves no folder, never a
mixture.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dataforge.errors import InputError

__all__ = ["check_replaceable", "replace_folder"]

_Made = TypeVar("_Made")


def check_replaceable(folder: Path, marker: str) -> None:
    """InputError where `folder` is not one of ours or cannot be made; asked before work begins."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent).cleanup()
    except OSError as error:
        raise InputError(
            f"{folder}: no folder can be made there ({error.strerror}); name another place with "
            "--out"
        ) from None
    if folder.exists() and not (folder / marker).is_file() and not _is_empty(folder):
        raise InputError(
            f"{folder} is there already and was not made by this command ({marker} is missing); "
            f"name another place with --out"
        )


def replace_folder(folder: Path, marker: str, write: Callable[[Path], _Made]) -> _Made:
    """Has `write` fill a folder beside `folder`, puts it in its place, and returns what it did.

    On any failure `folder` is as it was and nothing is left beside it.
    """
    check_replaceable(folder, marker)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made = beside / "new"
        made.mkdir()
        result = write(made)
        for path in made.rglob("*"):
            if path.is_file():
                _sync(path)
        if folder.exists():
            folder.rename(beside / "old")
        made.rename(folder)
        _sync(folder.parent)
        return result
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
