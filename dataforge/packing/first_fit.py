"""Packs samples into rows: exact First-Fit-Decreasing over integer lengths, in linear time.

The textbook takes samples longest first (ties in input order) and puts each into the first bin
with room. Filling one bin at a time with the longest remaining sample that still fits makes the
very same bins: a bin never regains room, so what a bin takes does not depend on the bins after it.
That form only ever asks for the longest remaining length <= r, and lengths only ever run out, so a
disjoint-set forest over lengths answers in near-constant time: O(samples + capacity) in all.

A large input is compiled with numba where it is installed; the same function, interpreted, packs a
small one in less time than compiling takes. All lengths must be in memory (4 bytes a sample); the
order of finished bins is the caller's, see `shuffled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dataforge.errors import PackingError
from dataforge.packing.order import permutation

__all__ = ["Bins", "first_fit_decreasing", "shuffled"]

_WORTH_COMPILING = 200_000
"""Samples from which compiling (about 3 s a process) is small beside tokenising them."""


@dataclass(frozen=True, slots=True)
class Bins:
    """Which samples share a row; iterating gives the sample numbers of each bin in turn."""

    samples: NDArray[np.int32]
    """Sample numbers, bin after bin."""
    starts: NDArray[np.int64]
    """Where in `samples` each bin begins, and one past the last."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, bin_number: int) -> NDArray[np.int32]:
        return self.samples[self.starts[bin_number] : self.starts[bin_number + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[number] for number in range(len(self)))


def first_fit_decreasing(lengths: ArrayLike, capacity: int) -> Bins:
    """The bins of textbook First-Fit-Decreasing; every length must be in 1 … capacity."""
    sizes = np.ascontiguousarray(lengths, dtype=np.int32)
    if sizes.size and not 1 <= sizes.min() <= sizes.max() <= capacity:
        raise PackingError(
            f"lengths from {sizes.min()} to {sizes.max()} cannot be packed into rows of "
            f"{capacity} tokens; drop or cut longer samples first"
        )
    fill = _compiled() if sizes.size >= _WORTH_COMPILING else _fill
    samples = np.empty(sizes.size, np.int32)
    starts = np.empty(sizes.size + 1, np.int64)
    bins = fill(sizes, capacity, samples, starts)
    return Bins(samples, starts[: bins + 1].copy())


def shuffled(bins: Bins, seed: int) -> Bins:
    """The same bins in an order drawn from `seed`; packing leaves them sorted by sample length."""
    order = permutation(len(bins), seed)
    sizes = np.diff(bins.starts)[order]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    samples = np.concatenate([bins[number] for number in order]) if len(bins) else bins.samples
    return Bins(samples, starts)


_Fill = Callable[[NDArray[np.int32], int, NDArray[np.int32], NDArray[np.int64]], int]


def _fill(
    sizes: NDArray[np.int32],
    capacity: int,
    samples: NDArray[np.int32],
    starts: NDArray[np.int64],
) -> int:
    """Fills `samples` and `starts` as in `Bins`; the number of bins."""
    # Counting sort: of the samples sorted by length, ties in input order, those of length v that
    # are not yet placed stand at next_of[v] … end_of[v] - 1.
    end_of = np.cumsum(np.bincount(sizes, minlength=capacity + 1))
    next_of = end_of.copy()
    sorted_samples = np.empty(sizes.size, np.int32)
    for sample in range(sizes.size - 1, -1, -1):
        next_of[sizes[sample]] -= 1
        sorted_samples[next_of[sizes[sample]]] = sample
    # nearest[v] is v while samples of length v remain; else it leads down to the longest that do.
    nearest = np.arange(capacity + 1)
    for length in range(1, capacity + 1):
        if next_of[length] == end_of[length]:
            nearest[length] = length - 1
    placed = 0
    bins = 0
    while placed < sizes.size:
        starts[bins] = placed
        bins += 1
        room = capacity
        while True:
            length = room
            while nearest[length] != length:
                nearest[length] = nearest[nearest[length]]
                length = nearest[length]
            if length == 0:
                break
            samples[placed] = sorted_samples[next_of[length]]
            placed += 1
            room -= length
            next_of[length] += 1
            if next_of[length] == end_of[length]:
                nearest[length] = length - 1
    starts[bins] = placed
    return bins


@cache
def _compiled() -> _Fill:
    """`_fill` compiled, or as it is where numba is not installed."""
    if find_spec("numba") is None:
        return _fill
    import numba

    compiled: _Fill = numba.njit(_fill)
    return compiled
