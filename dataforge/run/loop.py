"""A loop's rounds: run the body, and with its critique run it again, until it is good enough.

Every round starts from the record the loop was entered with, not from the round before, so only the
critique carries over; and it takes the same way through the body. Rounds are one after another; to
draw several at once and keep the best is another action's work.
"""

from __future__ import annotations

from typing import Protocol

from dataforge.errors import Unmet
from dataforge.plan.loop import CRITIQUE, Loop
from dataforge.plan.route import Route
from dataforge.plan.struct import breach
from dataforge.run.state import Record, Rejected, entry

__all__ = ["Rounds", "run_loop"]


class Rounds(Protocol):
    """What a loop needs of the walk it is on."""

    @property
    def attempted(self) -> int:
        """How many attempts at nodes the walk has made."""
        ...

    def supersede(self, begun: int) -> None:
        """Takes back the attempts made since there were `begun`."""
        ...

    async def follow(self, route: Route, record: Record) -> Record:
        """Takes the steps of a route."""
        ...

    def writer(self, field: str) -> str:
        """The node that last wrote a field."""
        ...


async def run_loop(loop: Loop, route: Route, record: Record, rounds: Rounds) -> Record:
    """The body's record of the first round that meets `until`; `Rejected` when none does.

    `route`: the way through the body, the same in every round.
    """
    fresh = entry(loop.preconditions, record)
    critique: Record = {}
    unmet, made = Unmet("no round"), record
    begun = rounds.attempted
    for _ in range(loop.at_most):
        rounds.supersede(begun)
        made = await rounds.follow(route, entry(loop.body.preconditions, {**fresh, **critique}))
        found = breach(loop.until, made)
        if found is None:
            return made
        unmet = found
        said = made.get(loop.critique) if loop.critique else None
        # A verdict that could not be parsed has nothing to say.
        critique = {CRITIQUE: said} if said else {}
    raise _out_of_rounds(loop, made, unmet, rounds)


def _out_of_rounds(loop: Loop, made: Record, unmet: Unmet, rounds: Rounds) -> Rejected:
    field = next(name for name in loop.until if breach({name: loop.until[name]}, made))
    value = made.get(field)
    status = value if isinstance(value, str) else unmet.reason
    said = made.get(loop.critique) if loop.critique else None
    tries = "1 attempt" if loop.at_most == 1 else f"{loop.at_most} attempts"
    detail = said if isinstance(said, str) else unmet.detail
    return Rejected(rounds.writer(field), f"{status} after {tries}", detail)
