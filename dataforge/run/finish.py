"""The corpus of a run, made from its logs: the same rows in the same order however they came about.

Everything here can be made again at any time, so it is written whole and put in place in one step.
Memory holds an offset a walk and the columns of the table at hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict

from dataforge.corpus.record import Call, Sample, Turn
from dataforge.errors import RunError
from dataforge.run.journal import ChatEntry, read_entry
from dataforge.run.log import parse, read_line, read_lines
from dataforge.run.trace import Outcome, WalkEnd

__all__ = [
    "CALLS",
    "CORPUS",
    "JOURNAL",
    "WALKS",
    "Ended",
    "ended_walks",
    "make_corpus",
    "read_walk",
]

JOURNAL = "calls.jsonl"
WALKS = "walks.jsonl"
CORPUS = "corpus.parquet"
CALLS = "calls.parquet"


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a walk's end stands in the log of walks."""

    offset: int
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


def ended_walks(folder: Path, fingerprint: str) -> dict[str, Ended]:
    """Walk id -> its latest end under this fingerprint."""
    path = folder / WALKS
    if not path.exists():
        return {}
    ended: dict[str, Ended] = {}
    for offset, line in read_lines(path):
        head = parse(_Head, line, str(path), offset)
        if head.fingerprint == fingerprint:
            node, reason = sys.intern(head.node), sys.intern(head.reason)
            ended[head.id] = Ended(offset, head.seed_id, head.outcome, node, reason)
    return ended


def make_corpus(folder: Path, ends: Sequence[Ended]) -> None:
    """Writes `corpus.parquet` and `calls.parquet` of the accepted among `ends`, in their order."""
    # polars is slow to import and needed here alone.
    from dataforge.corpus.store import write_calls, write_samples

    accepted = [end.offset for end in ends if end.outcome == "accepted"]
    with (folder / WALKS).open("rb") as walks, (folder / JOURNAL).open("rb") as journal:
        write_samples(folder / CORPUS, (_sample(walk) for walk in _walks(walks, accepted)))
        write_calls(
            folder / CALLS,
            (call for walk in _walks(walks, accepted) for call in _calls(walk, journal)),
        )


def read_walk(file: BinaryIO, offset: int) -> WalkEnd:
    """The walk's end at an offset of an open log of walks."""
    return parse(WalkEnd, read_line(file, offset), file.name, offset)


def _walks(file: BinaryIO, offsets: Iterable[int]) -> Iterator[WalkEnd]:
    for offset in offsets:
        yield read_walk(file, offset)


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


def _calls(walk: WalkEnd, journal: BinaryIO) -> Iterator[Call]:
    number = 0
    for attempt in walk.attempts:
        for _, offset in sorted(attempt.calls.items()):
            entry = read_entry(journal, offset)
            if entry.walk_id != walk.id:
                raise RunError(
                    f"{journal.name}: byte {offset} belongs to another walk than {walk.id}; "
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
