"""Which walks a run makes, and in which order they are begun.

Seeds are ranked by a draw, so that a few walks are spread over a large file instead of taking its
head, and are begun in rank order, a round at a time: every seed once, then every seed twice. Asking
for more walks later only adds to those asked for before. Ranks are kept on disk, so memory does not
follow the number of seeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii

from dataforge.run.sampling import Draws
from dataforge.run.scratch import scratch

__all__ = ["Plan", "Planned", "walk_id"]


@dataclass(frozen=True, slots=True)
class Planned:
    """One walk to make."""

    seed: int
    """Which seed, by the order they were read in, from 0."""
    seed_id: str
    walk: int
    """Which walk of that seed, from 0."""


class Plan:
    """The walks of a run over its seeds, as even as can be; lower ranks get the odd ones."""

    def __init__(self, seed_ids: Iterable[str], total: int, run_seed: int) -> None:
        """`total`: walks in all."""
        self.total = total
        drawn = scratch("CREATE TABLE drawn (number INTEGER PRIMARY KEY, id TEXT, draw REAL)")
        drawn.executemany(
            "INSERT INTO drawn VALUES (?, ?, ?)",
            (
                (number, seed_id, Draws(run_seed, seed_id, 0).unit("rank"))
                for number, seed_id in enumerate(seed_ids)
            ),
        )
        drawn.execute("CREATE TABLE ranked (rank INTEGER PRIMARY KEY, number INTEGER, id TEXT)")
        drawn.execute(
            "INSERT INTO ranked SELECT ROW_NUMBER() OVER (ORDER BY draw, number) - 1, number, id"
            " FROM drawn ORDER BY draw, number"
        )
        drawn.execute("DROP TABLE drawn")
        self._base = drawn
        self._seeds: int = drawn.execute("SELECT COUNT(*) FROM ranked").fetchone()[0]

    def __iter__(self) -> Iterator[Planned]:
        """Every walk, in the order they are begun in."""
        return self.stretch(0, self.total)

    def stretch(self, start: int, stop: int) -> Iterator[Planned]:
        """The walks at places `start` to `stop` of that order, from 0."""
        ranked = "SELECT number, id FROM ranked WHERE rank >= ? AND rank < ? ORDER BY rank"
        while start < stop:
            walk, rank = divmod(start, self._seeds)
            end = min(rank + stop - start, self._seeds)
            for number, seed_id in self._base.execute(ranked, (rank, end)):
                yield Planned(number, seed_id, walk)
            start += end - rank

    def by_seed(self, length: int) -> Iterator[Planned]:
        """The first `length` walks, in the order of the seeds and of the walks of each."""
        rounds, odd = divmod(length, self._seeds)
        ordered = "SELECT number, id, rank FROM ranked ORDER BY number"
        for number, seed_id, rank in self._base.execute(ordered):
            for walk in range(rounds + (rank < odd)):
                yield Planned(number, seed_id, walk)


def walk_id(graph: str, run_seed: int, seed_id: str, walk: int) -> str:
    """Sixteen hex digits that name a walk, the same whenever it is walked again."""
    # A JSON list, written by hand since it is made for every walk several times over.
    quoted = encode_basestring_ascii
    name = f"[{quoted(graph)}, {run_seed}, {quoted(seed_id)}, {walk}]"
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
