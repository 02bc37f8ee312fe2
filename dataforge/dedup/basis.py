"""A rotation that gathers most of what rows hold into few numbers, with a proven bound on the rest.

With an orthonormal V, x.y = (xV).(yV) + what is left of both, and that is at most the product of
the lengths of what is left (Cauchy-Schwarz). The principal directions of a sample make these short
for rows like the sample's; for any other row the bound is loose but still holds. What rounding
adds is bounded as well: V's distance from orthonormal is measured, lengths are rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dataforge.dedup.predicate import LONGEST

__all__ = ["FIRST", "SECOND", "Basis", "Heads"]

Floats = NDArray[np.float32]

FIRST, SECOND = 47, 80
"""Directions in the first head and in the second; with the rest's length the first makes 48."""

_CHUNK = 4096
"""Rows projected at a time."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Rows as a basis sees them."""

    first: Floats
    """Rows x (directions + 1): the first head and the length it leaves; dot products are bounds."""
    second: Floats
    """Rows x directions: the second head."""
    rests: Floats
    """Rows x 2: the lengths that the first head, and both, leave."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Principal directions of a sample of rows."""

    directions: NDArray[np.float64]
    """Dimensions x directions, the strongest first."""
    first: int
    """How many of them are the first head."""
    slack: float
    """What rounding may take from a squared length."""

    @classmethod
    def fitted(cls, sample: Floats, first: int = FIRST, second: int = SECOND) -> Basis:
        """The basis of the uncentred covariance of `sample`, heads cut to half the dimensions."""
        dims = sample.shape[1]
        doubles = sample.astype(np.float64)
        _, vectors = np.linalg.eigh(doubles.T @ doubles)
        width = min(first + second, dims)
        kept = np.ascontiguousarray(vectors[:, ::-1][:, :width])
        skew = float(np.linalg.norm(kept.T @ kept - np.eye(width))) + dims * width * 2.0**-52
        return cls(kept, min(first, width), LONGEST**2 * 4 * (skew + dims * 2.0**-52))

    @property
    def band(self) -> float:
        """How far a bound computed in float32 from heads may lie under the real dot product."""
        # Heads round to float32 once each, then as many terms are added as there are directions;
        # the second bound takes one product back and adds two: values under 2.1, 32 half-ulps.
        terms = self.directions.shape[1] + 2 + 64
        return float(terms * 2.0**-24 * 1.05 * LONGEST**2 + 2 * self.slack)

    def heads(self, rows: Floats) -> Heads:
        """`rows` in this basis."""
        width = self.directions.shape[1]
        first = np.empty((len(rows), self.first + 1), np.float32)
        second = np.empty((len(rows), width - self.first), np.float32)
        rests = np.empty((len(rows), 2), np.float32)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            doubles = rows[part].astype(np.float64)
            turned = doubles @ self.directions
            squares = np.einsum("ij,ij->i", doubles, doubles)
            head = turned[:, : self.first]
            tail = turned[:, self.first :]
            after_first = squares - np.einsum("ij,ij->i", head, head)
            after_both = after_first - np.einsum("ij,ij->i", tail, tail)
            first[part, : self.first] = head
            second[part] = tail
            for column, left in enumerate((after_first, after_both)):
                lengths = np.sqrt(np.maximum(left, 0) + self.slack).astype(np.float32)
                rests[part, column] = np.nextafter(lengths, np.float32(2))
        first[:, self.first] = rests[:, 0]
        return Heads(first, second, rests)
