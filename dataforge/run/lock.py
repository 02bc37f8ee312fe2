"""One writer a run directory, held by the kernel and so let go by any death of the process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataforge.errors import RunError, RunLocked

__all__ = ["hold"]


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Holds the run directory `folder`, made if need be; RunLocked if another process has it."""
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be used as a run directory ({error.strerror}); "
            "choose another with --out"
        ) from error
    try:
        _take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise RunLocked(
            f"{folder}: process {owner} is writing this run; wait for it, stop it, "
            "or choose another directory with --out"
        ) from error
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be locked for writing ({error.strerror}); make room there, or "
            "choose another directory with --out"
        ) from error
