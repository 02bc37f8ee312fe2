"""Parts of a plan that a crew of several makes, each with logs of its own.

A walk's part follows from its place in the plan and from nothing else, so it is the same whoever
makes it, however many they are, and however many walks are asked for later. Parts grow along the
plan: a few walks are shared among several hands, and a million make some thousand parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Part", "parts"]

_FIRST = 16
_EACH = 16
_GROWTH = 4
_MOST = 1_024
"""Walks to a part at most, so that the death of a machine repeats little reading."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the plan with logs of its own."""

    number: int
    start: int
    """First place in the plan."""
    stop: int
    """The place after the last."""


def parts(total: int) -> Iterator[Part]:
    """The parts of a plan of so many walks, in order."""
    number = start = 0
    size = _FIRST
    while start < total:
        yield Part(number, start, min(start + size, total))
        start += size
        number += 1
        if number % _EACH == 0:
            size = min(size * _GROWTH, _MOST)
