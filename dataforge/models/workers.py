"""A file of workers: one model's endpoints, which may be added and removed while a run uses them.

One spec a line, `http://host:8000/v1#NAME`; blank lines and lines that begin with `#` are passed
over. All of them serve the same weights. A change is made under a lock and in place, so no reader
sees half of one. Who watches the file, and what it does with it, is the run's business.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from dataforge.errors import InputError, UnknownModel, UsageError
from dataforge.models.specs import read_spec, weights_of

__all__ = ["add_worker", "read_workers", "remove_worker", "stamp"]

_TRIES, _PAUSE_S = 50, 0.01


def read_workers(path: Path) -> tuple[str, ...]:
    """The specs in a file of workers, in its order, each once.

    Raises InputError for a file that cannot be read and for a line that is no spec of an endpoint
    or one of other weights, naming the line.
    """
    with _locked(path, fcntl.LOCK_SH) as file:
        return _parsed(path, _text(path, file))


def add_worker(path: Path, spec: str) -> bool:
    """Adds a spec to a file of workers, made if need be; False if it was there already.

    Raises UsageError for a spec that is no endpoint, or one of other weights.
    """
    _check(spec)

    def added(specs: tuple[str, ...]) -> tuple[str, ...]:
        if specs and weights_of(spec) != weights_of(specs[0]):
            raise UsageError(
                f"{spec}: serves {weights_of(spec)}, and the workers in {path} serve "
                f"{weights_of(specs[0])}; if they are the same, say so with ?weights=NAME"
            )
        return specs if spec in specs else (*specs, spec)

    path.touch()
    return _changed(path, added)


def remove_worker(path: Path, spec: str) -> bool:
    """Takes a spec, or all at an address (what stands before its `#`), out; False if none was."""
    return _changed(
        path, lambda specs: tuple(s for s in specs if spec not in (s, s.partition("#")[0]))
    )


def stamp(path: Path) -> tuple[int, ...] | None:
    """Tells one state of the file from the next; None while it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _changed(path: Path, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> bool:
    with _locked(path, fcntl.LOCK_EX) as file:
        text = _text(path, file)
        was = _parsed(path, text)
        now = change(was)
        if now == was:
            return False
        kept = [line for line in text.splitlines() if _spec(line) in ("", *now)]
        kept += [spec for spec in now if spec not in was]
        file.seek(0)
        file.write("".join(f"{line}\n" for line in kept))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
        return True


def _text(path: Path, file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 at byte {error.start + 1}") from None


def _parsed(path: Path, text: str) -> tuple[str, ...]:
    specs: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not (spec := _spec(line)):
            continue
        try:
            _check(spec)
        except (UnknownModel, UsageError) as error:
            raise InputError(f"{path}:{number}: {error}") from None
        first = next(iter(specs), spec)
        if weights_of(spec) != weights_of(first):
            raise InputError(
                f"{path}:{number}: {spec} serves {weights_of(spec)}, and {first} "
                f"{weights_of(first)}; if they are the same, say so with ?weights=NAME"
            )
        specs[spec] = None
    return tuple(specs)


def _spec(line: str) -> str:
    line = line.strip()
    return "" if line.startswith("#") else line


def _check(spec: str) -> None:
    if not spec.startswith(("http://", "https://")) or len(spec.split()) != 1:
        raise UsageError(f"{spec}: a worker is an endpoint; write http://host:port/v1#NAME")
    found = read_spec(spec)
    # As opening it would, which comes later and elsewhere.
    _ = found.share, found.whole("limit"), found.seconds("timeout"), found.switch("schema")


@contextmanager
def _locked(path: Path, how: int) -> Iterator[TextIO]:
    try:
        file = path.open("r+" if how == fcntl.LOCK_EX else "r", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: no file of workers that can be read ({error.strerror}); "
            f"`dataforge workers add URL --file {path}` makes one"
        ) from error
    with file:
        try:
            _wait(file, how)
        except BlockingIOError:
            raise InputError(f"{path}: is held by another process; try again") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be locked ({error.strerror})") from error
        yield file


def _wait(file: TextIO, how: int) -> None:
    """Takes the lock, which others hold for a moment; not for long, as a run may be waiting."""
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            return fcntl.flock(file, how | fcntl.LOCK_NB)
        time.sleep(_PAUSE_S)
    return fcntl.flock(file, how | fcntl.LOCK_NB)
