"""Seeds as a run sees them: what it needs to know of each, and of all of them together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from dataforge.models.text import clean

__all__ = ["Seed", "digest_seeds", "twins"]


class Seed(Protocol):
    """A passage to start walks from."""

    @property
    def id(self) -> str:
        """Unique among the seeds of a run, and the same on every reading."""
        ...

    @property
    def passage(self) -> str:
        """The text."""
        ...

    @property
    def meta(self) -> Mapping[str, str]:
        """What else is known of it; a graph takes of this what its source names."""
        ...


def digest_seeds(seeds: Iterable[Seed]) -> tuple[int, str]:
    """How many seeds there are, and a hash of all of them in order."""
    count, hashed = 0, hashlib.blake2b(digest_size=16)
    for seed in seeds:
        count += 1
        told = json.dumps([seed.id, seed.passage, sorted(seed.meta.items())])
        hashed.update(told.encode() + b"\n")
    return count, hashed.hexdigest()


def twins(seeds: Sequence[Seed]) -> dict[int, str]:
    """Index of a seed -> id of the first with the same passage, case and spacing apart."""
    first: dict[bytes, str] = {}
    found: dict[int, str] = {}
    for index, seed in enumerate(seeds):
        folded = " ".join(clean(seed.passage).split()).casefold()
        kept = first.setdefault(hashlib.blake2b(folded.encode(), digest_size=16).digest(), seed.id)
        if kept != seed.id:
            found[index] = kept
    return found
