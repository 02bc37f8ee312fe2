"""The corpus of a run, made from its logs: the same rows in the same order however they came about.

Everything here can be made again at any time, so it is written whole and put in place in one step.
Neither the walks nor what is known of them is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from dataforge.corpus.record import Call, Sample, Turn
from dataforge.errors import RunError
from dataforge.run.journal import ChatEntry, Entry
from dataforge.run.log import parse, read_lines
from dataforge.run.logs import JOURNAL, WALKS, Logs, part_names
from dataforge.run.scratch import scratch
from dataforge.run.trace import Outcome, WalkEnd

__all__ = ["CALLS", "CORPUS", "Ended", "EndedWalks", "ended_walks", "kept_in_order", "make_corpus"]

CORPUS = "corpus.parquet"
CALLS = "calls.parquet"


class Ended(NamedTuple):
    """How a walk ended, and where that stands."""

    part: str
    """Folder of the log, within the run directory."""
    offset: int
    """Byte of the log."""
    seed_id: str
    outcome: Outcome
    node: str
    reason: str


class _Head(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    fingerprint: str
    seed_id: str
    outcome: Outcome
    node: str
    reason: str


class EndedWalks:
    """Walk id -> its latest end, as logs of walks have it; kept on disk."""

    def __init__(self, folder: Path, parts: Iterable[str], fingerprint: str) -> None:
        """The ends under this fingerprint in those parts of a run directory that have logs."""
        self._base = scratch(
            "CREATE TABLE walk (id TEXT PRIMARY KEY, part, offset, seed, outcome, node, reason)"
            " WITHOUT ROWID"
        )
        for part in parts:
            path = folder / part / WALKS
            for offset, line in read_lines(path) if path.exists() else ():
                head = parse(_Head, line, str(path), offset)
                if head.fingerprint == fingerprint:
                    found = (head.seed_id, head.outcome, head.node, head.reason)
                    row = (head.id, part, offset, *found)
                    self._base.execute(
                        "INSERT OR REPLACE INTO walk VALUES (?, ?, ?, ?, ?, ?, ?)", row
                    )

    def __len__(self) -> int:
        (count,) = self._base.execute("SELECT COUNT(*) FROM walk").fetchone()
        return int(count)

    def get(self, name: str) -> Ended | None:
        """How the walk of an id ended, or None."""
        row = self._base.execute(f"SELECT {_ENDED} FROM walk WHERE id = ?", (name,)).fetchone()
        return None if row is None else Ended(*row)

    def items(self, outcome: Outcome | None = None) -> Iterator[tuple[str, Ended]]:
        """Every walk that ended so, or at all, by id."""
        asked = f"SELECT id, {_ENDED} FROM walk WHERE ? IN (outcome, '') ORDER BY id"
        for name, *ended in self._base.execute(asked, (outcome or "",)):
            yield name, Ended(*ended)

    def named(self, name: str) -> list[str]:
        """Ids that begin with `name`, and those of walks from the seed of that id."""
        asked = "SELECT id FROM walk WHERE substr(id, 1, ?) = ? OR seed = ? ORDER BY id"
        return [found for (found,) in self._base.execute(asked, (len(name), name, name))]


_ENDED = "part, offset, seed, outcome, node, reason"


def ended_walks(folder: Path, fingerprint: str) -> EndedWalks:
    """How the walks of a run directory ended under this fingerprint."""
    return EndedWalks(folder, part_names(folder), fingerprint)


def kept_in_order(ends: Iterable[Ended]) -> Callable[[], Iterator[Ended]]:
    """The same ends again and again, from disk; looking them up anew costs ten times that."""
    base = scratch("CREATE TABLE ended (part, offset, seed, outcome, node, reason)")
    base.executemany("INSERT INTO ended VALUES (?, ?, ?, ?, ?, ?)", ends)
    ordered = f"SELECT {_ENDED} FROM ended ORDER BY rowid"
    return lambda: map(Ended._make, base.execute(ordered))


def make_corpus(folder: Path, ends: Callable[[], Iterable[Ended]]) -> None:
    """Writes `corpus.parquet` and `calls.parquet` of the accepted among `ends`, in their order.

    `ends` is gone through twice.
    """
    # polars is slow to import and needed here alone.
    from dataforge.corpus.store import write_calls, write_samples

    def accepted() -> Iterator[tuple[str, WalkEnd]]:
        for end in ends():
            if end.outcome == "accepted":
                yield end.part, logs.walk(end.part, end.offset)

    with Logs(folder) as logs:
        write_samples(folder / CORPUS, (_sample(walk) for _, walk in accepted()))
        write_calls(
            folder / CALLS,
            (call for part, walk in accepted() for call in _calls(walk, partial(logs.call, part))),
        )


def _sample(walk: WalkEnd) -> Sample:
    return Sample(
        id=walk.id,
        seed_id=walk.seed_id,
        walk=walk.walk,
        path=walk.path,
        facts=walk.facts,
        messages=walk.messages,
        score=walk.score,
    )


def _calls(walk: WalkEnd, read: Callable[[int], Entry]) -> Iterator[Call]:
    number = 0
    for attempt in walk.attempts:
        for _, offset in sorted(attempt.calls.items()):
            entry = read(offset)
            if entry.walk_id != walk.id:
                raise RunError(
                    f"{JOURNAL}: byte {offset} belongs to another walk than {walk.id}; "
                    "the file was changed by hand"
                )
            if not isinstance(entry, ChatEntry):
                continue
            # What the assistant says in a prompt is an example: shown, not learned.
            asked = tuple(
                Turn(message.role, message.content, 0 if message.role == "assistant" else 1)
                for message in entry.messages
            )
            yield Call(
                id=f"{walk.id}-{number}",
                sample_id=walk.id,
                node=attempt.node,
                kind=attempt.node.partition("/")[0],
                step=attempt.step,
                attempt=attempt.number,
                superseded=attempt.superseded,
                finish=entry.reply.finish,
                messages=(*asked, Turn("assistant", entry.reply.text)),
                weights=entry.weights,
            )
            number += 1
