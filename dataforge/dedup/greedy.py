"""First come, first kept: a row stays unless its cosine with an already kept row reaches t.

The report's rule (section 2.1.1). The kept set and each dropped row's partner, the first kept row
in order of arrival that it reaches, are those of the one-by-one loop for any block size, thread
count or split into batches: every shortcut decides only outside a proven error band. Bounds from a
fitted basis prune most pairs before any dot product; where too many pairs survive them the plain
matrix product takes over, and a new basis is tried after ever longer waits. Nothing is approximate
here, and nothing reads or writes files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dataforge.dedup.basis import Basis, Heads
from dataforge.dedup.predicate import (
    Refusal,
    checked_threshold,
    refused_rows,
    similarities,
    single_band,
)
from dataforge.dedup.scan import Counts, Side, first_reached
from dataforge.errors import InputError

__all__ = ["FirstCome", "Outcome"]

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

_SURVIVORS = 0.15
"""Share of pairs surviving the first bound above which the plain product is cheaper."""

_TILE = 1024
"""Kept rows compared at a time."""

_FIT_AFTER = 512
"""Kept rows before a first basis is fitted."""

_SAMPLE = 8192
"""Kept rows a basis is fitted on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch of rows; arrays have one entry a row."""

    kept: NDArray[np.bool_]
    """Whether the row stays."""
    partner: Ids
    """The first row it reaches, numbered among all rows kept so far; -1 where not dropped."""
    similarity: NDArray[np.float64]
    """The cosine with that partner; NaN where there is none."""
    refused: tuple[Refusal, ...]
    """Rows that take no part: neither kept nor dropped."""


@dataclass(slots=True)
class _Tile:
    """Up to `_TILE` kept rows in order."""

    source: Floats
    ids: Ids
    heads: Heads | None = None


class FirstCome:
    """The rows kept so far; `add` takes more.

    A batch that fills whole tiles is referred to, not copied: do not write to it afterwards.
    """

    def __init__(
        self,
        dims: int,
        threshold: float,
        *,
        block: int = 512,
        method: Literal["auto", "dense"] = "auto",
    ) -> None:
        """`block` rows are compared at a time; `dense` never prunes."""
        if block < 1:
            raise InputError(f"block {block}: at least one row is compared at a time")
        self._dims = dims
        self._threshold = checked_threshold(threshold)
        self._block = block
        self._prunes = method == "auto"
        self._full: list[_Tile] = []
        self._open = np.empty((_TILE, dims), np.float32)
        self._open_ids = np.full(_TILE, -1, np.int64)
        self._filled = 0
        self._open_heads: Heads | None = None
        self._basis: Basis | None = None
        self._fit_at = _FIT_AFTER
        self._wait = _FIT_AFTER
        self.counts = Counts()
        """Pairs looked at through bounds, and how many survived them."""
        self.dense_blocks = 0
        """Blocks that the plain product finished."""

    def __len__(self) -> int:
        """Rows kept so far."""
        return len(self._full) * _TILE + self._filled

    def trust(self, rows: Floats) -> None:
        """Takes `rows` as kept already, unasked: those of an index."""
        for start in range(0, len(rows), _TILE):
            part = np.arange(start, min(start + _TILE, len(rows)), dtype=np.int64)
            self._keep(rows, part)
        self._open_ids[:] = -1

    def add(self, rows: Floats) -> Outcome:
        """Decides `rows` in their order against all kept before and each other."""
        refused = tuple(refused_rows(rows))
        if rows.shape[1] != self._dims:
            raise InputError(f"rows have {rows.shape[1]} dimensions, those kept {self._dims}")
        rows = np.ascontiguousarray(rows)
        partner = np.full(len(rows), -1, np.int64)
        similarity = np.full(len(rows), np.nan)
        kept = np.zeros(len(rows), np.bool_)
        usable = np.ones(len(rows), np.bool_)
        usable[[one.row for one in refused]] = False
        ids = np.flatnonzero(usable).astype(np.int64)
        for start in range(0, len(ids), self._block):
            self._add_block(rows, ids[start : start + self._block], kept, partner, similarity)
        self._open_ids[:] = -1
        return Outcome(kept, partner, similarity, refused)

    def _add_block(
        self,
        rows: Floats,
        ids: Ids,
        kept: NDArray[np.bool_],
        partner: Ids,
        similarity: NDArray[np.float64],
    ) -> None:
        self._refit()
        counts = Counts()
        heads = self._basis.heads(rows[ids]) if self._basis else None
        for number, tile in enumerate(self._tiles()):
            hit = self._compare(rows, ids, heads, tile, counts)
            met = hit >= 0
            if met.any():
                dropped = ids[met]
                partner[dropped] = number * _TILE + hit[met]
                similarity[dropped] = similarities(rows, tile.source, dropped, tile.ids[hit[met]])
                ids = ids[~met]
                heads = _taken(heads, ~met)
                if not len(ids):
                    break
            if heads is not None and counts.first > _SURVIVORS * counts.pairs:
                heads = None
        if heads is None and self._basis:
            self._give_up()
        self._settle(rows, ids, heads, kept, partner, similarity)
        self.counts.pairs += counts.pairs
        self.counts.first += counts.first
        self.counts.second += counts.second

    def _settle(
        self,
        rows: Floats,
        ids: Ids,
        heads: Heads | None,
        kept: NDArray[np.bool_],
        partner: Ids,
        similarity: NDArray[np.float64],
    ) -> None:
        """Decides rows that reach nothing kept before among themselves."""
        if heads is None:
            self.dense_blocks += 1
        hit = self._compare(rows, ids, heads, _Tile(rows, ids, heads), Counts(), themselves=True)
        met = hit >= 0
        ranks = len(self) + np.cumsum(~met) - 1
        partner[ids[met]] = ranks[hit[met]]
        similarity[ids[met]] = similarities(rows, rows, ids[met], ids[hit[met]])
        kept[ids[~met]] = True
        self._keep(rows, ids[~met], _taken(heads, ~met) if self._basis else None)

    def _compare(
        self,
        rows: Floats,
        ids: Ids,
        heads: Heads | None,
        tile: _Tile,
        counts: Counts,
        *,
        themselves: bool = False,
    ) -> Ids:
        if heads is not None and self._basis is not None:
            if tile.heads is None:
                tile.heads = self._basis.heads(tile.source[tile.ids])
            bounds = heads.first @ tile.heads.first.T
            left = Side(rows, ids, heads.second, heads.rests)
            right = Side(tile.source, tile.ids, tile.heads.second, tile.heads.rests)
            return first_reached(
                bounds, left, right, self._threshold, self._basis.band, counts,
                among_themselves=themselves,
            )  # fmt: skip
        bounds = rows[ids] @ tile.source[tile.ids].T
        none = np.empty((0, 0), np.float32)
        left, right = Side(rows, ids, none, none), Side(tile.source, tile.ids, none, none)
        return first_reached(
            bounds, left, right, self._threshold, single_band(self._dims), Counts(),
            among_themselves=themselves, exact_bounds=True,
        )  # fmt: skip

    def _tiles(self) -> list[_Tile]:
        if not self._filled:
            return self._full
        rows = self._open[: self._filled]
        last = _Tile(rows, np.arange(self._filled, dtype=np.int64), self._open_heads)
        return [*self._full, last]

    def _keep(self, rows: Floats, ids: Ids, heads: Heads | None = None) -> None:
        start = 0
        while start < len(ids):
            part = ids[start : start + _TILE - self._filled]
            end = self._filled + len(part)
            self._open[self._filled : end] = rows[part]
            self._open_ids[self._filled : end] = part
            mine = None if heads is None else _cut(heads, start, start + len(part))
            self._open_heads = _joined(self._open_heads, mine, empty=self._filled == 0)
            self._filled = end
            start += len(part)
            if end == _TILE:
                self._close(rows)

    def _close(self, rows: Floats) -> None:
        if (self._open_ids >= 0).all():
            tile = _Tile(rows, self._open_ids, self._open_heads)
        else:
            tile = _Tile(self._open, np.arange(_TILE, dtype=np.int64), self._open_heads)
            self._open = np.empty((_TILE, self._dims), np.float32)
        self._full.append(tile)
        self._open_ids = np.full(_TILE, -1, np.int64)
        self._filled, self._open_heads = 0, None

    def _refit(self) -> None:
        """Fits a basis once enough rows are kept, and again when the wait after a failure ends."""
        if not self._prunes or self._basis is not None or len(self) < self._fit_at:
            return
        tiles = self._tiles()
        each = max(1, _SAMPLE // len(tiles))
        picked = [tile.source[tile.ids[:: max(1, _TILE // each)]] for tile in tiles]
        self._basis = Basis.fitted(np.concatenate(picked))

    def _give_up(self) -> None:
        """Drops a basis that does not prune; the next is fitted when twice as many rows wait."""
        self._wait *= 2
        self._fit_at = len(self) + self._wait
        self._basis = None
        self._open_heads = None
        for tile in self._full:
            tile.heads = None


def _taken(heads: Heads | None, which: NDArray[np.bool_]) -> Heads | None:
    if heads is None or which.all():
        return heads
    return Heads(heads.first[which], heads.second[which], heads.rests[which])


def _cut(heads: Heads, start: int, stop: int) -> Heads:
    return Heads(heads.first[start:stop], heads.second[start:stop], heads.rests[start:stop])


def _joined(old: Heads | None, new: Heads | None, *, empty: bool) -> Heads | None:
    if new is None or (old is None and not empty):
        return None
    if old is None:
        return new
    return Heads(
        np.concatenate([old.first, new.first]),
        np.concatenate([old.second, new.second]),
        np.concatenate([old.rests, new.rests]),
    )
