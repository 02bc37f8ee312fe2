"""The rows kept so far, on disk: flat files that only grow, and a manifest replaced in one step.

Rows are written and synced first, then the manifest that counts them; so after a kill between any
two writes the manifest tells the truth, and what a file holds beyond it is cut before the next
append. Opening maps the files into memory and reads none of them: sizes are checked at once, the
checksums of rows only by `verify`. One writer at a time; nothing is ever taken out again.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dataforge.corpus.atomic import replace_file
from dataforge.dedup.greedy import FirstCome
from dataforge.dedup.predicate import checked_threshold, refused_rows
from dataforge.errors import InputError, RunLocked

__all__ = ["KeptIndex", "Segment"]

Floats = NDArray[np.float32]

_FORMAT = 1

_STORED = np.dtype("<f4")

_CHUNK = 2**16
"""Rows read at a time when checksums are verified."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What the manifest says of one file of rows."""

    rows: int
    """Rows that count; the file may hold more after a kill."""
    crc32: int
    """Of the bytes of these rows."""


@dataclass(slots=True)
class KeptIndex:
    """Kept rows in their order, for one model, threshold and number of dimensions."""

    folder: Path
    model: str
    """What made the rows, in full: name, revision, prompt, precision."""
    threshold: float
    dims: int
    segments: tuple[Segment, ...] = ()
    segment_rows: int = 2**20
    """Rows a file takes before the next is begun."""

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        model: str,
        threshold: float,
        dims: int,
        segment_rows: int = 2**20,
    ) -> KeptIndex:
        """The index in `folder`; an empty one, not yet written, where there is none.

        InputError, naming the difference, where it was begun with another model, threshold or
        dimension, or where files are damaged.
        """
        index = cls(folder, model, checked_threshold(threshold), dims, (), segment_rows)
        if not index._manifest.is_file():
            return index
        said = _read_manifest(index._manifest)
        wanted = {"model": model, "threshold": threshold, "dims": dims}
        for name, value in wanted.items():
            if said[name] != value:
                raise InputError(
                    f"{folder}: this index was begun with {name} {said[name]!r}, now it is "
                    f"{value!r}; use the same or another folder"
                )
        index.segments = _segments(index._manifest, said["segments"])
        for number, segment in enumerate(index.segments):
            path = index._path(number)
            found = path.stat().st_size if path.is_file() else 0
            if found < segment.rows * index._width:
                raise InputError(
                    f"{path}: {segment.rows} rows of {index._width} bytes are wanted, "
                    f"found {found} bytes; restore the file or begin another index"
                )
        return index

    def __len__(self) -> int:
        """Rows in the index."""
        return sum(segment.rows for segment in self.segments)

    def rows(self) -> Iterator[Floats]:
        """The rows, a file at a time, mapped and not read."""
        for number, segment in enumerate(self.segments):
            if segment.rows:
                shape = (segment.rows, self.dims)
                yield np.memmap(self._path(number), _STORED, "r", shape=shape)

    def first_come(self, *, block: int = 512) -> FirstCome:
        """The rule, with the rows of this index as those kept so far."""
        kept = FirstCome(self.dims, self.threshold, block=block)
        for part in self.rows():
            kept.trust(part)
        return kept

    def append(self, rows: Floats) -> None:
        """Adds kept rows; on disk when it returns, and either all count or, after a kill, none.

        InputError where a row is refused by the rule, RunLocked while another process appends or
        has appended since this index was opened.
        """
        if rows.ndim != 2 or rows.shape[1] != self.dims:
            raise InputError(f"{self.folder}: rows of {self.dims} dimensions are wanted")
        for refusal in refused_rows(rows):
            raise InputError(f"{self.folder}: row {refusal.row} is {refusal.reason}; drop it first")
        if not len(rows):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if self._manifest.is_file():
                now = _segments(self._manifest, _read_manifest(self._manifest)["segments"])
                if now != self.segments:
                    raise RunLocked(f"{self.folder}: another process has appended; open it again")
            elif self.segments:
                raise InputError(f"{self._manifest}: is gone; restore it or begin another index")
            segments = self._written(np.ascontiguousarray(rows, _STORED))
            self._publish(segments)
            self.segments = segments

    def verify(self) -> None:
        """Reads every row; InputError where one is not what was appended."""
        for number, (segment, rows) in enumerate(
            zip((one for one in self.segments if one.rows), self.rows(), strict=True)
        ):
            crc = 0
            for start in range(0, len(rows), _CHUNK):
                crc = zlib.crc32(rows[start : start + _CHUNK].data, crc)
            if crc != segment.crc32:
                raise InputError(
                    f"{self._path(number)}: rows have changed since they were written (checksum "
                    f"{crc}, wanted {segment.crc32}); restore the file or begin another index"
                )

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def _width(self) -> int:
        return self.dims * _STORED.itemsize

    def _path(self, number: int) -> Path:
        return self.folder / f"rows-{number:05d}.f32"

    def _written(self, rows: Floats) -> tuple[Segment, ...]:
        """The segments as they are once `rows` are in files and synced."""
        segments = list(self.segments)
        start = 0
        while start < len(rows):
            if not segments or segments[-1].rows >= self.segment_rows:
                segments.append(Segment(0, 0))
            last = segments[-1]
            part = rows[start : start + self.segment_rows - last.rows]
            path = self._path(len(segments) - 1)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            with os.fdopen(descriptor, "r+b") as file:
                file.truncate(last.rows * self._width)
                file.seek(0, os.SEEK_END)
                file.write(part.data)
                file.flush()
                os.fsync(file.fileno())
            segments[-1] = Segment(last.rows + len(part), zlib.crc32(part.data, last.crc32))
            start += len(part)
        return tuple(segments)

    def _publish(self, segments: tuple[Segment, ...]) -> None:
        _sync_folder(self.folder)
        body: dict[str, object] = {
            "format": _FORMAT,
            "model": self.model,
            "threshold": self.threshold,
            "dims": self.dims,
            "count": sum(one.rows for one in segments),
            "segments": [asdict(one) for one in segments],
        }
        text = json.dumps(body | {"checksum": _checksum(body)}, indent=1) + "\n"
        replace_file(self._manifest, lambda path: path.write_text(text))
        _sync_folder(self.folder)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunLocked(f"{self.folder}: another process appends to this index") from None
            yield


def _checksum(body: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _read_manifest(path: Path) -> dict[str, object]:
    try:
        said = json.loads(path.read_text())
        checksum = said.pop("checksum")
        whole = said["format"] == _FORMAT and checksum == _checksum(said)
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise InputError(f"{path}: damaged, or of another version; begin another index")
    return dict(said)


def _segments(path: Path, listed: object) -> tuple[Segment, ...]:
    if not isinstance(listed, list):
        raise InputError(f"{path}: lists no segments; begin another index")
    return tuple(Segment(int(one["rows"]), int(one["crc32"])) for one in listed)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
