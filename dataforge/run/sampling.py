"""Every choice of a walk, drawn from a counter instead of a stream.

A draw is a hash of who asks and for what, so it does not depend on what was drawn before it, on
another walk or on which machine asks. That is what makes a run the same at any concurrency, and
stopped or not. It costs a hash a draw; it is no source of secrets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from json.encoder import encode_basestring_ascii

__all__ = ["Draws"]

_BITS = 128
_FRACTION = 53


@dataclass(frozen=True)
class Draws:
    """The draws of one walk."""

    run_seed: int
    seed_id: str
    walk: int

    def below(self, n: int, *path: str | int) -> int:
        """A number in [0, n), however large; always the same for the same path.

        No number's probability is off by more than one part in 2**64.
        """
        if n < 1:
            raise ValueError(f"cannot draw below {n}")
        drawn = self._bits(path)
        for part in range(1, -(-(n.bit_length() + 64) // _BITS)):
            drawn = drawn << _BITS | self._bits((*path, part))
        return drawn % n

    def unit(self, *path: str | int) -> float:
        """A number in [0, 1), in steps of 2**-53."""
        return (self._bits(path) >> (_BITS - _FRACTION)) / (1 << _FRACTION)

    def pick(self, weights: Sequence[float], *path: str | int) -> int:
        """An index into `weights` (> 0, any scale), drawn in proportion to them."""
        left = self.unit(*path) * sum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return len(weights) - 1

    def _bits(self, path: tuple[str | int, ...]) -> int:
        hashed = self._begun.copy()
        hashed.update("".join(f", {_said(part)}" for part in path).encode() + b"]")
        return int.from_bytes(hashed.digest())

    @cached_property
    def _begun(self) -> hashlib.blake2b:
        """The hash of what all draws of the walk begin with: a JSON list, still open."""
        asked = f"[{self.run_seed}, {_said(self.seed_id)}, {self.walk}"
        return hashlib.blake2b(asked.encode(), digest_size=_BITS // 8)


def _said(part: str | int) -> str:
    return encode_basestring_ascii(part) if isinstance(part, str) else str(part)
