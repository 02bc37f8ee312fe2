"""An append-only file of JSON lines that survives being killed at any instant.

An append returns once the line is on disk. Appends made while an fsync runs wait for the next one
and share it, so many walks cost few fsyncs and no timer is needed. A line counts only when it is
whole; what a kill left half-written at the end is cut at the next opening. It has one writer (the
run's lock sees to that) and never rewrites a line.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from dataforge.errors import RunError

__all__ = ["Log", "parse", "read_line", "read_lines"]

Record = TypeVar("Record", bound=BaseModel)


class Log:
    """A log open for appending; make one with `Log.open`."""

    def __init__(self, path: Path, descriptor: int, end: int, cut: int, damaged: int) -> None:
        self.path = path
        self.cut = cut
        """Bytes of a torn last line that opening cut off."""
        self.damaged = damaged
        """Lines before the last whole one that are not whole, and are passed over."""
        self._descriptor = descriptor
        self._end = end
        self._waiting: list[tuple[bytes, asyncio.Future[int]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"log-{path.name}")
        self._broken: RunError | None = None

    @classmethod
    def open(cls, path: Path) -> Log:
        """The log at `path`, made if it is not there, its torn tail cut; RunError if it cannot."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunError(f"{path}: cannot be written ({error.strerror})") from error
        try:
            size = os.fstat(descriptor).st_size
            end, bad, bad_before_end = 0, 0, 0
            for offset, line in _lines(path):
                if _whole(line):
                    end, bad_before_end = offset + len(line), bad
                else:
                    bad += 1
            if end < size:
                os.ftruncate(descriptor, end)
                os.fsync(descriptor)
            _sync_folder(path.parent)
        except OSError as error:
            os.close(descriptor)
            raise RunError(f"{path}: cannot be read and mended ({error.strerror})") from error
        return cls(path, descriptor, end, size - end, bad_before_end)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every whole line with its offset, in the order of appending."""
        return read_lines(self.path)

    async def append(self, line: bytes) -> int:
        """Appends a JSON object (no newline in it) and gives its offset, once it is on disk.

        Raises RunError when the disk refuses it, and from then on for every append.
        """
        if self._broken is not None:
            raise self._broken
        landed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((line + b"\n", landed))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return await landed

    async def close(self) -> None:
        """Lands what is still waiting and closes the file; safe to call twice."""
        if self._flushing is not None:
            await self._flushing
        self._thread.shutdown()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                data = b"".join(line for line, _ in batch)
                try:
                    await loop.run_in_executor(self._thread, self._write, data)
                except OSError as error:
                    self._refuse(batch, error)
                    return
                for line, landed in batch:
                    # A walk that was cancelled meanwhile no longer listens; its line stays.
                    if not landed.done():
                        landed.set_result(self._end)
                    self._end += len(line)
        finally:
            self._flushing = None

    def _write(self, data: bytes) -> None:
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], self._end + written)
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._end)
            raise

    def _refuse(self, batch: list[tuple[bytes, asyncio.Future[int]]], error: OSError) -> None:
        self._broken = RunError(
            f"{self.path}: cannot be written ({error.strerror}); everything up to here is kept. "
            "Make room and give the same command again: it repeats no finished call"
        )
        for _, landed in batch + self._waiting:
            if not landed.done():
                landed.set_exception(self._broken)
        self._waiting = []


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Every whole line of a log and its offset, without opening it for writing."""
    for offset, line in _lines(path):
        if _whole(line):
            yield offset, line


def read_line(file: BinaryIO, offset: int) -> bytes:
    """The line of an open log at an offset; RunError if no whole line begins there."""
    file.seek(offset)
    line = file.readline()
    if not _whole(line):
        raise RunError(f"{file.name}: no whole line at byte {offset}; the file was changed by hand")
    return line


def parse(kind: type[Record], line: bytes, name: str, offset: int) -> Record:
    """A log's line as a record; RunError if it is none, naming the log and the place."""
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise RunError(
            f"{name}: the line at byte {offset} is none of this log ({problem['msg']}); the file "
            "was changed by hand or by another version. Give another directory with --out"
        ) from error


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    offset = 0
    with path.open("rb") as file:
        for line in file:
            yield offset, line
            offset += len(line)


def _whole(line: bytes) -> bool:
    # A JSON object holds no raw newline and no NUL, so a torn one cannot end like a whole one, nor
    # can a block of zeros that a power cut left in the file's length.
    return line.startswith(b"{") and line.endswith(b"}\n") and b"\0" not in line


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
