"""What one sitting of a run may spend before it stops, to be gone on with later.

A budget stops a run as Ctrl-C does: no new call begins, those in flight are finished and kept, so
it is passed by as much as is in flight. It counts what this sitting spends; the same command again
has the whole of it once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataforge.run.tally import Tally

__all__ = ["NO_BUDGET", "Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a sitting; None is no limit."""

    tokens: int | None = None
    """Tokens read and written by models, >= 1."""
    seconds: float | None = None
    """Of a clock on the wall."""
    usd: float | None = None
    """What calls cost, > 0; every model that plays then needs a price."""
    walks: int | None = None
    """Walks that are begun and made to their end, >= 1."""

    def passed(self, tally: Tally) -> str:
        """Why the sitting has to stop by what it has spent, in words; empty while it may go on."""
        spent = tally.tokens_in + tally.tokens_out
        if self.tokens is not None and spent >= self.tokens:
            return f"{spent:,} tokens used of the {self.tokens:,} allowed"
        if self.usd is not None and tally.usd >= self.usd:
            return f"${tally.usd:,.4f} spent of the ${self.usd:,.4f} allowed"
        if self.walks is not None and tally.now.total() >= self.walks:
            return f"{tally.now.total():,} walks made of the {self.walks:,} allowed"
        return ""

    def timed_out(self) -> str:
        """Why the sitting has to stop by the clock, in words."""
        return f"the {self.seconds:,.0f} seconds allowed are over"


NO_BUDGET = Budget()
"""No limit at all."""
