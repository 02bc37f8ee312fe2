"""How much of a text says again what it has said: loops of phrases, lines and sentences.

A word counts as repeated when it stands in a run of `RUN` words that occurred before, or in a
sentence or line that nearly equals an earlier one (the paraphrase loops of small models), and a
letter when it stands in a stutter such as `hahahaha`. Ordinary prose has a share near 0, a refrain
or a form some more; callers choose the limit. Meaning is not read: the same thought in other words
is not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dataforge.verifiers.words import Word, sentences, words

__all__ = ["Repetition", "repetition"]

RUN = 3
"""Words that must recur together."""
NEAR = 0.75
"""Share of their words that two sentences have in common when they count as one."""
TAIL = 60
"""Words at the end that are also weighed alone, so that a loop is not excused by a long start."""
LONGEST_PHRASE = 12
"""Words of the phrase shown."""
_STUTTER = re.compile(r"([^\W\d_]{1,8}?)\1{7,}")


@dataclass(frozen=True, slots=True)
class Repetition:
    """What a text repeats."""

    share: float
    """Share that repeats what stands earlier, in [0, 1]: of the text or of its last `TAIL` words,
    whichever is greater."""
    phrase: str
    """The phrase said most often, at most `LONGEST_PHRASE` words; empty when none recurs."""
    times: int
    """How often it is said; 0 when none recurs."""
    span: tuple[int, int]
    """Offsets of the phrase where it is first said again; (0, 0) when none recurs."""


def repetition(text: str) -> Repetition:
    """What `text` repeats; texts of fewer than `RUN` words repeat nothing but stutters."""
    found = words(text)
    folded = [word.folded for word in found]
    taken = [again or near for again, near in zip(_again(folded), _near(text, found), strict=True)]
    share = max(_share(taken), _share(taken[-TAIL:]))
    stutter = max(_STUTTER.finditer(text), key=lambda match: len(match[0]), default=None)
    if stutter is not None and len(stutter[0]) > share * len(text):
        span = (stutter.start() + len(stutter[1]), stutter.start() + 2 * len(stutter[1]))
        times = len(stutter[0]) // len(stutter[1])
        return Repetition(len(stutter[0]) / len(text), stutter[1], times, span)
    starts, size = _phrase(folded)
    if not size:
        return Repetition(share, "", 0, (0, 0))
    span = (found[starts[1]].start, found[starts[1] + size - 1].end)
    return Repetition(share, text[span[0] : span[1]], len(starts), span)


def _share(taken: Sequence[bool]) -> float:
    return sum(taken) / len(taken) if taken else 0.0


def _again(folded: Sequence[str]) -> list[bool]:
    """Marks the words inside a run of `RUN` that occurred before."""
    taken = [False] * len(folded)
    seen: set[tuple[str, ...]] = set()
    for at in range(len(folded) - RUN + 1):
        run = tuple(folded[at : at + RUN])
        if run in seen:
            taken[at : at + RUN] = [True] * RUN
        seen.add(run)
    return taken


def _near(text: str, found: Sequence[Word]) -> list[bool]:
    """Marks the words of sentences that nearly equal an earlier one."""
    taken = [False] * len(found)
    earlier: list[Counter[str]] = []
    at = 0
    for _, end in sentences(text):
        first = at
        while at < len(found) and found[at].end <= end:
            at += 1
        if at - first < RUN:
            continue
        bag = Counter(word.folded for word in found[first:at])
        if any(_alike(bag, other) for other in earlier):
            taken[first:at] = [True] * (at - first)
        else:
            earlier.append(bag)
    return taken


def _alike(one: Counter[str], other: Counter[str]) -> bool:
    return (one & other).total() >= NEAR * (one | other).total()


def _phrase(folded: Sequence[str]) -> tuple[list[int], int]:
    """Where the most repeated run stands, grown as long as it is said as often, and its length."""
    starts: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(folded) - RUN + 1):
        starts.setdefault(tuple(folded[at : at + RUN]), []).append(at)
    if not starts:
        return [], 0
    often = max(starts.values(), key=len)
    if len(often) < 2:
        return [], 0
    size = RUN
    while size < LONGEST_PHRASE and often[-1] + size < len(folded):
        if len({folded[at + size] for at in often}) > 1:
            break
        size += 1
    return often, size
