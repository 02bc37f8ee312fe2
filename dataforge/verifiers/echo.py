"""How much of an answer merely repeats its instruction.

The share counts words inside runs of at least `run` words that the instruction holds too, so
shared names and set phrases weigh nothing. Quoting is often right (an extract, a title, a clause
discussed), so a high share alone condemns only an answer that adds nothing; callers set the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataforge.verifiers.words import words

__all__ = ["Echo", "echo"]


@dataclass(frozen=True, slots=True)
class Echo:
    """What an answer took over from its instruction."""

    share: float
    """Share of the answer's words taken over in runs, in [0, 1]."""
    covered: float
    """Words taken over as a share of the instruction's words, at most 1: how much is copied."""
    span: tuple[int, int]
    """The longest stretch taken over, in the answer; (0, 0) when there is none."""


def echo(answer: str, instruction: str, run: int = 6) -> Echo:
    """What `answer` repeats from `instruction` in runs of `run` words or more (run >= 1)."""
    ours = words(answer)
    theirs = [word.folded for word in words(instruction)]
    # An answer shorter than a run can still be nothing but echo.
    run = max(1, min(run, len(ours)))
    runs = {tuple(theirs[at : at + run]) for at in range(len(theirs) - run + 1)}
    folded = [word.folded for word in ours]
    taken = [False] * len(ours)
    for at in range(len(ours) - run + 1):
        if tuple(folded[at : at + run]) in runs:
            taken[at : at + run] = [True] * run
    first, size = _longest(taken)
    span = (ours[first].start, ours[first + size - 1].end) if size else (0, 0)
    if not ours or not theirs:
        return Echo(0.0, 0.0, span)
    return Echo(sum(taken) / len(ours), min(1.0, sum(taken) / len(theirs)), span)


def _longest(taken: list[bool]) -> tuple[int, int]:
    """Begin and length of the longest stretch of True."""
    best = (0, 0)
    begin = 0
    for at, value in enumerate([*taken, False]):
        if value:
            continue
        best = max(best, (begin, at - begin), key=lambda stretch: stretch[1])
        begin = at + 1
    return best
