"""Percentiles of any number of durations, in bounded memory.

Durations are counted in buckets that grow by 2 %, so a percentile is off by no more than 1 % of
itself (the sketch of DDSketch, Masson, Rim and Lee, 2019, without its collapsing of buckets).
"""

from __future__ import annotations

from collections import Counter
from math import ceil, exp, log

__all__ = ["ERROR", "Latency"]

ERROR = 0.01
"""Most that a percentile is off by, as a part of itself."""

_GROWTH = log((1 + ERROR) / (1 - ERROR))
_LEAST = 1e-6


class Latency:
    """Durations seen so far, in seconds."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0

    def see(self, seconds: float) -> None:
        """Counts a duration; one below a microsecond counts as that."""
        self._buckets[ceil(log(max(seconds, _LEAST)) / _GROWTH)] += 1
        self.count += 1

    def percentile(self, share: float) -> float:
        """The least duration that at least this share, in (0, 1], do not pass; 0 of none."""
        left = ceil(share * self.count)
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return 2 * exp(bucket * _GROWTH) / (1 + exp(_GROWTH))
        return 0.0
