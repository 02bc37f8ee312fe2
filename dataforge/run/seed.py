"""Seeds as a run sees them: any number of passages, in memory one at a time.

A store keeps on disk what has to be known of all seeds at once (ids, where each stands, which have
the same passage) and fetches a passage when its walk begins: again from its source, where that can
be read at any place, else from a copy. It chooses nothing; order and ranks are the schedule's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from dataforge.errors import InputError
from dataforge.models.text import clean
from dataforge.run.scratch import scratch

__all__ = ["Place", "Seed", "SeedStore"]

Place = int | str
"""Where a seed stands in its source, in the source's own terms: a byte, a path."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A passage to start walks from."""

    id: str
    """Unique among the seeds of a run, and the same on every reading."""
    passage: str
    """The text."""
    meta: Mapping[str, str] = field(default_factory=dict)
    """What else is known of it; a graph takes of this what its source names."""


class SeedStore:
    """The seeds of a run, in the order they were added."""

    def __init__(self, path: str, fetch: Callable[[Place], Seed | None] | None = None) -> None:
        """`path`: where they come from, for the record; `fetch` reads one again at its
        place, whatever its id, or gives None where there is none.
        """
        self.path = path
        self._fetch = fetch
        self._base = scratch(
            "CREATE TABLE seed (number INTEGER PRIMARY KEY, id TEXT UNIQUE, folded BLOB, "
            "mark BLOB, place, copy TEXT)"
        )
        self._count = 0
        self._hashed = hashlib.blake2b(digest_size=16)
        self._indexed = False

    @classmethod
    def of(cls, path: str, seeds: Iterable[Seed]) -> Self:
        """A store that holds copies of the given seeds."""
        store = cls(path)
        for seed in seeds:
            store.add(seed)
        return store

    def __len__(self) -> int:
        return self._count

    @property
    def digest(self) -> str:
        """Hash of all seeds in order: ids, passages and what else is known of them."""
        return self._hashed.hexdigest()

    def add(self, seed: Seed, place: Place | None = None) -> None:
        """Adds a seed of an id not taken yet; without a place a copy of it is kept."""
        told = _told(seed)
        self._hashed.update(told.encode() + b"\n")
        copy = told if place is None else None
        row = (self._count, seed.id, _folded(seed.passage), _mark(told), place, copy)
        self._base.execute("INSERT INTO seed VALUES (?, ?, ?, ?, ?, ?)", row)
        self._count += 1

    def find(self, seed_id: str) -> Seed | None:
        """The seed of an id, or None."""
        row = self._base.execute("SELECT number FROM seed WHERE id = ?", (seed_id,)).fetchone()
        return None if row is None else self[row[0]]

    def __getitem__(self, number: int) -> Seed:
        """The seed that was added as the `number`-th, from 0.

        Raises InputError where its source no longer holds it.
        """
        seed_id, mark, place, copy = self._base.execute(
            "SELECT id, mark, place, copy FROM seed WHERE number = ?", (number,)
        ).fetchone()
        if copy is not None:
            _, passage, meta = json.loads(copy)
            return Seed(seed_id, passage, dict(meta))
        assert self._fetch is not None
        found = self._fetch(place)
        seed = None if found is None else Seed(seed_id, found.passage, found.meta)
        if seed is None or _mark(_told(seed)) != mark:
            raise InputError(
                f"{self.path}: seed {seed_id!r} is no longer where it was: the file was changed "
                "while it was in use. Give the same command again"
            )
        return seed

    def __iter__(self) -> Iterator[Seed]:
        return map(self.__getitem__, range(self._count))

    def ids(self) -> Iterator[str]:
        """Every id, in order."""
        for (seed_id,) in self._base.execute("SELECT id FROM seed ORDER BY number"):
            yield seed_id

    def twin(self, number: int) -> str | None:
        """Id of the first seed with the same passage, case and spacing apart; None if it is that.

        No seed may be added after the first asking.
        """
        if not self._indexed:
            self._base.execute("CREATE INDEX by_passage ON seed (folded)")
            self._indexed = True
        first, seed_id = self._base.execute(
            "SELECT number, id FROM seed WHERE folded = "
            "(SELECT folded FROM seed WHERE number = ?) ORDER BY number LIMIT 1",
            (number,),
        ).fetchone()
        return None if first == number else str(seed_id)


def _told(seed: Seed) -> str:
    return json.dumps([seed.id, seed.passage, sorted(seed.meta.items())])


def _mark(told: str) -> bytes:
    """Hash of all that is known of a seed, to the letter."""
    return hashlib.blake2b(told.encode(), digest_size=16).digest()


def _folded(passage: str) -> bytes:
    """Hash of a passage, the same for any case and spacing."""
    folded = " ".join(clean(passage).split()).casefold()
    return hashlib.blake2b(folded.encode(), digest_size=16).digest()
