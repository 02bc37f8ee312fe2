"""The two logs of a run, and where they lie: in its directory, or in parts that a crew owns.

What has been logged is read here by name, so that nobody else need know how many parts there are.
Few files are open at a time, however many parts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

from pydantic import BaseModel

from dataforge.run.journal import Entry, read_entry
from dataforge.run.log import parse, read_line
from dataforge.run.trace import WalkEnd

__all__ = ["JOURNAL", "WALKS", "Logs", "part_name", "part_names"]

JOURNAL = "calls.jsonl"
WALKS = "walks.jsonl"

View = TypeVar("View", bound=BaseModel)

_PARTS = "parts"
_OPEN_AT_ONCE = 64


def part_name(number: int) -> str:
    """The folder of a crew's part, within the run directory."""
    return f"{_PARTS}/{number:06}"


def part_names(folder: Path) -> Iterator[str]:
    """Every folder of logs within a run directory, in order; itself by an empty name."""
    yield ""
    for part in sorted((folder / _PARTS).glob("*")):
        yield f"{_PARTS}/{part.name}"


class Logs:
    """The logs of a run directory, open for reading; use it in a `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: OrderedDict[tuple[str, str], BinaryIO] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()

    def walk(self, part: str, offset: int) -> WalkEnd:
        """The walk's end at an offset of a part's log of walks."""
        return self.walk_as(WalkEnd, part, offset)

    def walk_as(self, kind: type[View], part: str, offset: int) -> View:
        """The same as a model that reads less of it."""
        file = self._file(part, WALKS)
        return parse(kind, read_line(file, offset), file.name, offset)

    def call(self, part: str, offset: int) -> Entry:
        """The call at an offset of a part's journal."""
        return read_entry(self._file(part, JOURNAL), offset)

    def _file(self, part: str, name: str) -> BinaryIO:
        file = self._files.get((part, name))
        if file is None:
            file = self._files[part, name] = (self._folder / part / name).open("rb")
            if len(self._files) > _OPEN_AT_ONCE:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end((part, name))
        return file
