"""Every finished call of a run, on disk before anything depends on it.

The journal is the resume, the cache and the provenance at once: a call is found again by a hash of
everything that shaped it, so what has not changed is never asked twice and a changed prompt asks
again only for what depends on it. Within an attempt it is named by what it asks, not by when, since
a node may ask several things at once. Replies are stored as they came; what is made of them is made
again on every resume. The index holds only the calls of walks that still have to end.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, RootModel

from dataforge.models.base import Message, Params, Reply
from dataforge.models.judge import Case
from dataforge.run.log import Log, parse, read_line
from dataforge.verifiers.verdict import Verdict

__all__ = [
    "ChatEntry",
    "Entry",
    "Journal",
    "VerdictEntry",
    "asked_hash",
    "call_key",
    "read_entry",
]


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    key: str
    """Hash of all that shaped the call; see `call_key`."""
    walk_id: str
    step: str
    """The node's name, `#` and how often it had run before on this walk."""
    attempt: int
    """Which attempt of the step, from 1."""
    name: str
    """Which call of the attempt: a hash of what is asked, `#`, how often that was asked before."""
    node: str
    role: str
    weights: str
    """Identity of what replied."""
    seconds: float
    """From asking to the reply, waiting for a free slot left out."""
    at: str
    """When the reply came, UTC, ISO 8601."""


class ChatEntry(_Asked):
    """One reply of a chat model."""

    kind: Literal["chat"] = "chat"
    messages: Annotated[tuple[Message, ...], Field(strict=False)]
    params: Params
    reply: Reply


class VerdictEntry(_Asked):
    """One verdict of a judge written in code."""

    kind: Literal["verdict"] = "verdict"
    rubric: str
    case: Case
    verdict: Verdict


Entry = ChatEntry | VerdictEntry
"""One line of `calls.jsonl`."""


class _Line(RootModel[Annotated[Entry, Field(discriminator="kind")]]):
    """Either kind of entry."""


class _Found(BaseModel):
    model_config = ConfigDict(extra="ignore")

    key: str
    walk_id: str


class Journal:
    """The journal of one run, open for writing."""

    def __init__(self, log: Log, index: dict[str, int]) -> None:
        self.log = log
        self._index = index
        self._file = log.path.open("rb")
        self._asked = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @classmethod
    def open(cls, path: Path, wanted: Callable[[str], bool]) -> Journal:
        """The journal at `path`, made if need be, its torn tail cut.

        `wanted` says of a walk's id whether its calls may still be asked for.
        """
        log = Log.open(path)
        index: dict[str, int] = {}
        for offset, line in log.lines():
            found = parse(_Found, line, str(path), offset)
            if wanted(found.walk_id):
                index.setdefault(found.key, offset)
        return cls(log, index)

    def find(self, key: str) -> tuple[int, Entry] | None:
        """The finished call under `key` and where it stands, or None."""
        offset = self._index.get(key)
        return None if offset is None else (offset, read_entry(self._file, offset))

    async def add(self, entry: Entry) -> int:
        """Writes a finished call; gives where it stands, once on disk. RunError if it cannot."""
        return await self.log.append(entry.model_dump_json().encode())

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Marks a call from before it is asked until it is added."""
        self._asked += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                self._idle.set()

    async def settled(self) -> None:
        """Waits until no call is under way.

        A walk that was stopped may have left some: a node that asks several things at once is
        unwound by the first of them, and the others still have a reply coming that is paid for.
        """
        await self._idle.wait()

    async def close(self) -> None:
        """Lands what is still waiting; safe to call twice."""
        await self.log.close()
        self._file.close()


def read_entry(file: BinaryIO, offset: int) -> Entry:
    """The call at an offset of an open journal file."""
    return parse(_Line, read_line(file, offset), file.name, offset).root


def asked_hash(weights: str, asked: Mapping[str, object]) -> str:
    """Hash of who replies and what is asked (JSON values)."""
    return _hash([weights, asked])


def call_key(name: str, walk_id: str, step: str, attempt: int) -> str:
    """Hash of a call's name and of where on which walk it is asked."""
    return _hash([name, walk_id, step, attempt])


def _hash(told: list[object]) -> str:
    canonical = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=16).hexdigest()
