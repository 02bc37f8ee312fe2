"""Whether two stored rows are as close as the threshold, decided without any rounding.

The question is about real numbers: is the dot product of two float32 rows, as they are stored, at
least the threshold, as it is stored in float64? Products of float32 are exact in float64, so only
the sum rounds, by a bound known beforehand; inside that bound the sum is taken exactly. That makes
the answer the same for any block, thread or machine. Rows are never normalised here: a row that is
not of unit length is refused, since mending it would change what the question is about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dataforge.errors import InputError

__all__ = [
    "LONGEST",
    "UNIT_TOLERANCE",
    "Refusal",
    "checked_threshold",
    "double_band",
    "reaches",
    "refused_rows",
    "similarities",
    "single_band",
]

Rows = NDArray[np.float32]

UNIT_TOLERANCE = 1e-3
"""How far from 1 the length of a row may lie; normalising in float16 stays within."""

LONGEST = 1 + UNIT_TOLERANCE
"""The greatest length of a row that is not refused."""

_DIMS = 2**16
"""The bands below are proven up to so many dimensions."""

_CHUNK = 2**21
"""Numbers turned into float64 at a time."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that takes no part."""

    row: int
    """Its number among those given."""
    reason: str
    """not a number, infinite, zero or not of unit length."""


def refused_rows(rows: Rows) -> list[Refusal]:
    """The rows that have no direction or no unit length, in their order; their number counts them.

    InputError where `rows` is no two-dimensional float32 array of 1 … 65,536 columns.
    """
    if rows.ndim != 2 or rows.dtype != np.float32 or not 1 <= rows.shape[1] <= _DIMS:
        raise InputError(
            f"rows to compare: a float32 array of rows with 1 to {_DIMS} columns is wanted, "
            f"found {rows.dtype} of shape {rows.shape}"
        )
    found: list[Refusal] = []
    step = max(1, _CHUNK // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        doubles = part.astype(np.float64)
        # A sum of squares of finite float32 cannot overflow in float64, so only bad rows stand out.
        lengths = np.sqrt(np.einsum("ij,ij->i", doubles, doubles))
        bad = ~(np.abs(lengths - 1) <= UNIT_TOLERANCE - 1e-9)
        found += [Refusal(start + int(row), _reason(part[row])) for row in np.flatnonzero(bad)]
    return found


def _reason(row: Rows) -> str:
    if np.isnan(row).any():
        return "not a number"
    if np.isinf(row).any():
        return "infinite"
    return "not of unit length" if row.any() else "zero"


def checked_threshold(threshold: float) -> float:
    """`threshold` as it is; InputError unless it lies within -1 … 1."""
    if not -1 <= threshold <= 1:
        raise InputError(f"threshold {threshold}: a cosine from -1 to 1 is wanted")
    return threshold


def double_band(dims: int) -> float:
    """How far a float64 dot product of two rows may lie from the real one, in any order of adding.

    Products are exact; the n - 1 additions err by (n - 1) u sum|x y| to first order (Higham,
    Accuracy and Stability of Numerical Algorithms, 3.1), and sum|x y| <= |x| |y|.
    """
    return dims * 2.0**-53 * 1.01 * LONGEST**2


def single_band(terms: int) -> float:
    """The same of a float32 dot product of `terms` terms, where products round as well."""
    return terms * 2.0**-24 * 1.01 * LONGEST**2 + 1e-12


def reaches(left: Rows, right: Rows, threshold: float) -> bool:
    """Whether the real dot product of two rows is at least `threshold`."""
    # Every product is exact, and fsum rounds the exact sum once: its sign is the exact sum's.
    products = left.astype(np.float64) * right.astype(np.float64)
    return math.fsum((*products.tolist(), -threshold)) >= 0


def similarities(
    left: Rows, right: Rows, left_ids: NDArray[np.int64], right_ids: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The dot products of paired rows, within `double_band`; one by one, so alike in any batch."""
    found = np.empty(len(left_ids), np.float64)
    step = max(1, _CHUNK // left.shape[1])
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        products = left[left_ids[part]].astype(np.float64) * right[right_ids[part]]
        found[part] = products.sum(axis=1)
    return found
