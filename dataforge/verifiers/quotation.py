"""How much of a text is quoted from a source: the longest run of words the two share.

Runs are exact in the sense of `words` (case and punctuation aside), so a paraphrase is not a
quotation and swapping one word breaks a run in two. A stock phrase shared by chance counts like any
other; callers choose how long a run must be before it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataforge.verifiers.words import Word, words

__all__ = ["SharedRun", "longest_shared_run"]


@dataclass(frozen=True, slots=True)
class SharedRun:
    """The longest run of words that a text shares with its source."""

    words: int
    """Length in words; 0 when no word is shared."""
    span: tuple[int, int]
    """Where the run stands in the text: offsets in characters, end exclusive."""
    source_span: tuple[int, int]
    """Where it stands in the source."""


def longest_shared_run(text: str, source: str) -> SharedRun:
    """The longest run of words of `text` that `source` holds too; the earliest of equals."""
    ours, theirs = words(text), words(source)
    short, long = 0, min(len(ours), len(theirs))
    # If a run of n is shared, so is one of n - 1: the longest is found by halving.
    while short < long:
        middle = (short + long + 1) // 2
        if _shared_at(ours, theirs, middle) is None:
            long = middle - 1
        else:
            short = middle
    found = _shared_at(ours, theirs, short) if short else None
    if found is None:
        return SharedRun(0, (0, 0), (0, 0))
    here, there = found
    last = short - 1
    return SharedRun(
        short,
        (ours[here].start, ours[here + last].end),
        (theirs[there].start, theirs[there + last].end),
    )


def _shared_at(ours: Sequence[Word], theirs: Sequence[Word], size: int) -> tuple[int, int] | None:
    """Where the first run of `size` words that both hold begins in each."""
    runs: dict[tuple[str, ...], int] = {}
    source = [word.folded for word in theirs]
    for start in range(len(source) - size + 1):
        runs.setdefault(tuple(source[start : start + size]), start)
    text = [word.folded for word in ours]
    for start in range(len(text) - size + 1):
        there = runs.get(tuple(text[start : start + size]))
        if there is not None:
            return start, there
    return None
