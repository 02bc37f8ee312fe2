"""Counts of a run while it goes on, and the law that no walk is ever lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dataforge.errors import RunError
from dataforge.run.events import CallEnded, Event, RunBegan, WalkEnded
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

    def see(self, event: Event) -> None:
        """Counts an event."""
        match event:
            case RunBegan():
                self.walks = event.walks
                self.earlier = Counter({"accepted": event.accepted, "rejected": event.rejected})
            case WalkEnded():
                self.now[event.end.outcome] += 1
            case CallEnded(reused=True):
                self.reused += 1
            case CallEnded():
                self.new += 1
                self.tokens_in += event.reply.tokens_in
                self.tokens_out += event.reply.tokens_out

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
