"""Counts of a run while it goes on, and the law that no walk is ever lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dataforge.errors import CallOutcome, RunError
from dataforge.run.events import CallEnded, CallFailed, Event, RunBegan, WalkEnded
from dataforge.run.latency import Latency
from dataforge.run.prices import Price
from dataforge.run.trace import Outcome

__all__ = ["Tally", "conserve"]


@dataclass(slots=True)
class Tally:
    """What one sitting of a run has seen so far."""

    walks: int = 0
    """Asked for in all."""
    earlier: Counter[Outcome] = field(default_factory=Counter)
    """Ended in earlier sittings, and not walked again."""
    now: Counter[Outcome] = field(default_factory=Counter)
    """Ended in this one."""
    new: int = 0
    """Calls that a model answered."""
    reused: int = 0
    """Calls that the journal answered."""
    tokens_in: int = 0
    """Of new calls."""
    tokens_out: int = 0
    """Of new calls."""
    usd: float = 0.0
    """Of new calls whose price is known."""
    unpriced: int = 0
    """New calls whose price is not known."""
    failures: Counter[CallOutcome] = field(default_factory=Counter)
    """Times that an endpoint gave no reply, by what came of it."""
    latency: Latency = field(default_factory=Latency)
    """Of new calls."""
    _rates: Mapping[str, Price | None] = field(default_factory=dict)

    def see(self, event: Event) -> None:
        """Counts an event."""
        match event:
            case RunBegan():
                self.walks, self._rates = event.walks, event.rates
                self.earlier = Counter({"accepted": event.accepted, "rejected": event.rejected})
            case WalkEnded():
                self.now[event.end.outcome] += 1
            case CallEnded(reused=True):
                self.reused += 1
            case CallEnded():
                self.new += 1
                self.tokens_in += event.reply.tokens_in
                self.tokens_out += event.reply.tokens_out
                self.latency.see(event.seconds)
                price = self._rates.get(event.role)
                if price is None:
                    self.unpriced += 1
                else:
                    self.usd += price.of(event.reply)
            case CallFailed():
                self.failures[event.outcome] += 1

    def recount(self, on_disk: Counter[Outcome]) -> None:
        """Takes over how many walks have ended in all from what is on disk."""
        self.now = on_disk - self.earlier

    def ended(self, outcome: Outcome) -> int:
        """How many walks have ended this way, in this sitting or an earlier one."""
        return self.earlier[outcome] + self.now[outcome]


def conserve(tally: Tally, on_disk: Counter[Outcome], stopped: bool) -> int:
    """How many walks are pending, having shown that none was lost or counted twice.

    walks = accepted + rejected + failed + pending, the disk agrees with what was seen, and a run
    that was not stopped leaves none pending. Raises RunError where that does not hold.
    """
    pending = tally.walks - on_disk.total()
    agree = all(on_disk[outcome] == tally.ended(outcome) for outcome in ("accepted", "rejected"))
    if stopped:
        # Walks that failed in an earlier sitting and were not come to again still count as failed.
        whole = agree and pending >= 0 and on_disk["failed"] >= tally.now["failed"]
    else:
        whole = agree and pending == 0 and on_disk["failed"] == tally.now["failed"]
    if not whole:
        raise RunError(
            f"walks do not add up, which is a bug: {tally.walks} asked for, seen {dict(tally.now)} "
            f"after {dict(tally.earlier)}, on disk {dict(on_disk)}. Nothing on disk was changed"
        )
    return pending
