"""The compiled loop that finds, for each row, the first kept row it reaches.

It reads a matrix of upper bounds of dot products. Where a bound is under the threshold nothing more
is asked; else a second, tighter bound and then a float64 dot product decide, and the row's scan
ends at the first that reaches. A pair that float64 cannot decide is handed back to the caller, who
resumes the loop after it. It runs on one thread; the matrix product before it uses BLAS's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from dataforge.dedup.predicate import checked_threshold, double_band, reaches
from dataforge.errors import InputError

__all__ = ["Counts", "Side", "first_reached"]

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Side:
    """The rows on one side of a comparison."""

    source: Floats
    """Whole rows."""
    ids: Ids
    """Which rows of `source` these are."""
    second: Floats
    """Their second heads; no columns where the matrix holds dot products, not bounds."""
    rests: Floats
    """Two columns: the length of what the first head, and both heads, leave of each row."""


@dataclass(slots=True)
class Counts:
    """How well the bounds pruned."""

    pairs: int = 0
    """Pairs whose first bound was looked at."""
    first: int = 0
    """Pairs that the first bound did not rule out."""
    second: int = 0
    """Pairs that neither bound ruled out."""


def first_reached(
    bounds: Floats,
    left: Side,
    right: Side,
    threshold: float,
    band: float,
    counts: Counts,
    *,
    among_themselves: bool = False,
    exact_bounds: bool = False,
) -> Ids:
    """For each left row the first right row, in order, whose real dot product reaches `threshold`.

    -1 where there is none. No entry of `bounds` may lie more than `band` under the real dot
    product, nor, with `exact_bounds`, more than `band` above. `among_themselves`: both sides are
    the same rows, and each meets only earlier ones that reached nothing.
    """
    scan = _compiled()
    hit = np.full(len(left.ids), -1, np.int64)
    tally = np.zeros(3, np.int64)
    low = np.nextafter(np.float32(checked_threshold(threshold) - band), np.float32(-2))
    high = np.nextafter(np.float32(threshold + band), np.float32(8))
    row = column = 0
    while True:
        row, column = scan(
            bounds, low, high if exact_bounds else np.float32(8),
            left.source, left.ids, left.second, left.rests,
            right.source, right.ids, right.second, right.rests,
            threshold, double_band(left.source.shape[1]), among_themselves,
            hit, row, column, tally,
        )  # fmt: skip
        if row == len(hit):
            break
        if reaches(left.source[left.ids[row]], right.source[right.ids[column]], threshold):
            hit[row] = column
            row, column = row + 1, 0
        else:
            column += 1
    counts.pairs += int(tally[0])
    counts.first += int(tally[1])
    counts.second += int(tally[2])
    return hit


def _scan(
    bounds: Floats, low: np.float32, high: np.float32,
    x: Floats, x_ids: Ids, x_second: Floats, x_rests: Floats,
    y: Floats, y_ids: Ids, y_second: Floats, y_rests: Floats,
    threshold: float, doubt: float, triangle: bool,
    hit: Ids, row: int, column: int, tally: Ids,
) -> tuple[int, int]:  # fmt: skip
    """Fills `hit` from (`row`, `column`) on; the pair in doubt, or (rows, 0) at the end."""
    dims = x.shape[1]
    width = x_second.shape[1]
    for a in range(row, hit.size):
        end = a if triangle else bounds.shape[1]
        start = column if a == row else 0
        tally[0] += end - start
        line = bounds[a]
        while start < end and hit[a] < 0:
            stop = min(start + 32, end)
            top = line[start]
            for c in range(start, stop):
                top = max(top, line[c])
            if top >= low:
                for c in range(start, stop):
                    if line[c] < low or (triangle and hit[c] >= 0):
                        continue
                    tally[1] += 1
                    if line[c] >= high:
                        hit[a] = c
                        break
                    if width:
                        tail = np.float32(0)
                        for q in range(width):
                            tail += x_second[a, q] * y_second[c, q]
                        bound = line[c] - x_rests[a, 0] * y_rests[c, 0]
                        if bound + tail + x_rests[a, 1] * y_rests[c, 1] < low:
                            continue
                    tally[2] += 1
                    i = x_ids[a]
                    j = y_ids[c]
                    total = 0.0
                    for q in range(dims):
                        total += np.float64(x[i, q]) * np.float64(y[j, q])
                    if total >= threshold + doubt:
                        hit[a] = c
                        break
                    if total >= threshold - doubt:
                        tally[0] -= end - c - 1
                        return a, c
            start = stop
    return hit.size, 0


_Scan = Callable[..., tuple[int, int]]


@cache
def _compiled() -> _Scan:
    if find_spec("numba") is None:
        raise InputError(
            "comparing rows needs numba, which is not installed; run `pip install numba`"
        )
    import numba

    # Rows hold no NaN, so comparisons may assume none; sums may be taken in any order, which the
    # bands allow for.
    fast = {"reassoc", "contract", "nsz", "nnan"}
    compiled: _Scan = numba.njit(fastmath=fast, nogil=True, error_model="numpy")(_scan)
    return compiled
