"""Whether a run has accepted as many walks as it was asked for.

Walks end in any order, so "stop at the thousandth accepted" would give another corpus at another
concurrency. They are counted in the order they were planned: the aim is reached once a stretch of
the plan from its beginning has ended whole and holds enough accepted ones, and what was walked
beyond it is kept on disk and left out of the corpus.
"""

from __future__ import annotations

from dataforge.run.trace import Outcome

__all__ = ["Aim"]


class Aim:
    """Counts the walks of a plan as they end."""

    def __init__(self, accept: int | None) -> None:
        """`accept`: how many are to be accepted, >= 1; None for all that are planned."""
        self._accept = accept
        self._ended: dict[int, Outcome] = {}
        self._whole = 0
        self._accepted = 0
        self.length: int | None = None
        """How many walks of the plan the corpus is made of; None while the aim is not reached."""

    @property
    def reached(self) -> bool:
        """Enough walks are accepted."""
        return self.length is not None

    def see(self, place: int, outcome: Outcome) -> None:
        """Counts the walk at a place of the plan, from 0."""
        if self._accept is None or self.reached:
            return
        self._ended[place] = outcome
        while (ended := self._ended.pop(self._whole, None)) is not None:
            self._whole += 1
            self._accepted += ended == "accepted"
            if self._accepted == self._accept:
                self.length = self._whole
                return
