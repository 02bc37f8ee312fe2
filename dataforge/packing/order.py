"""Orders drawn from a seed alone: which bin lies where in the shards, which row trains when.

An order is a pure function of its keys, the same on every machine and for every version of the
libraries beneath: Philox's raw output is fixed by its definition, while shuffles of random-number
libraries may change. Nothing is carried from one step to the next, so a run resumes anywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["permutation", "rows_of_step", "steps_per_epoch"]

_SHUFFLE_BINS = 2**63
"""Keeps the key of the packer's one shuffle apart from the epochs of a training run."""


def permutation(count: int, seed: int, epoch: int | None = None) -> NDArray[np.int64]:
    """The numbers 0 … count - 1 in an order that `seed` and `epoch` decide; both >= 0."""
    key = [seed, _SHUFFLE_BINS if epoch is None else epoch]
    draws = np.random.Philox(key=np.array(key, dtype=np.uint64)).random_raw(count)
    return np.argsort(draws, kind="stable")


def steps_per_epoch(rows: int, batch_rows: int) -> int:
    """Steps in which every row is seen once; the last may hold fewer than `batch_rows`."""
    return -(-rows // batch_rows)


def rows_of_step(rows: int, batch_rows: int, seed: int, step: int) -> NDArray[np.int64]:
    """The rows that optimizer step `step` (from 0) trains on: 1 to `batch_rows` of them."""
    epoch, within = divmod(step, steps_per_epoch(rows, batch_rows))
    order = permutation(rows, seed, epoch)
    return order[within * batch_rows : (within + 1) * batch_rows]
