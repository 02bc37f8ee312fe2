"""Which walks a run makes, and in which order they are begun.

Seeds are ranked by a draw, so that a few walks are spread over a large file instead of taking its
head, and are begun in rank order, a round at a time: every seed once, then every seed twice. Asking
for more walks later only adds to those asked for before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dataforge.run.sampling import Draws

__all__ = ["Planned", "plan_walks", "walk_id"]


@dataclass(frozen=True, slots=True)
class Planned:
    """One walk to make."""

    seed: int
    """Index of its seed among the seeds read."""
    walk: int
    """Which walk of that seed, from 0."""


def plan_walks(seed_ids: Sequence[str], total: int, run_seed: int) -> Iterator[Planned]:
    """`total` walks over the seeds, as even as can be; those of lower rank get the odd ones."""
    ranks = sorted(
        range(len(seed_ids)), key=lambda at: (Draws(run_seed, seed_ids[at], 0).unit("rank"), at)
    )
    for begun in range(total):
        walk, rank = divmod(begun, len(ranks))
        yield Planned(ranks[rank], walk)


def walk_id(graph: str, run_seed: int, seed_id: str, walk: int) -> str:
    """Sixteen hex digits that name a walk, the same whenever it is walked again."""
    name = json.dumps([graph, run_seed, seed_id, walk])
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
