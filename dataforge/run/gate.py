"""How many calls one endpoint takes at once, found out by asking, and when it takes none.

A gate opens with a few calls and widens as they are answered. When the endpoint says to slow down
it halves and shuts for a pause, once for a whole burst of refusals, so that a hundred calls refused
together cost one step back and not a hundred; after that it widens slowly (additive increase,
multiplicative decrease: Chiu and Jain, 1989). When calls fail one after another with no reply
between, the endpoint is taken for down: the gate shuts, longer each time, and lets one call through
to see. It holds no queue; those who wait stand in lanes, and are told when there is room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from dataforge.run.halt import Halt, Stopped

__all__ = ["DOWN", "OPENING", "PATIENCE", "Gate", "Queue", "spread"]

OPENING = 8
"""Calls at once that a gate begins with, where its endpoint takes as many."""

DOWN = 5
"""Failures in a row, with no reply between, after which an endpoint is taken for down."""

PATIENCE = 900.0
"""Seconds of pauses with no reply to any call, after which an endpoint is given up."""

_BASE = 0.5
_LONGEST = 60.0
_LONG_S = 30.0
"""Seconds of a pause that the user is told of."""


class Queue(Protocol):
    """Those who wait for a gate."""

    @property
    def first(self) -> tuple[int, int]:
        """What ranks the one to go next; the least goes first."""
        ...

    def admit(self) -> None:
        """Lets through as many as may go."""
        ...


class Gate:
    """The calls of one endpoint, at most `limit` at a time."""

    def __init__(
        self, limit: int, halt: Halt, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        """`tell` gets a line when the endpoint goes down, comes back or asks for a long wait."""
        self.limit = limit
        self.width = float(max(1, min(limit, OPENING)))
        """Calls that may be in flight now, from 1 to the limit; a part is not one."""
        self.flying = 0
        """Calls in flight."""
        self.bursts = 0
        """Bursts of rate limits so far; a call refused in one it began before is part of that."""
        self.queues: list[Queue] = []
        self._halt = halt
        self._tell = tell
        self._shut: asyncio.Task[None] | None = None
        self._slowly = False
        """Widen additively, having met a rate limit."""
        self._limits = 0
        """Bursts since anyone was served."""
        self._failures = 0
        """Failures since anyone was served."""
        self._waited = 0.0
        """Seconds of pauses since anyone was served."""

    @property
    def open(self) -> bool:
        """A call may go now."""
        return not self.shut and self.flying < int(self.width)

    @property
    def shut(self) -> bool:
        """No call may go until a pause is over."""
        return self._shut is not None

    @property
    def down(self) -> bool:
        """It is taken for down: too many calls in a row have failed."""
        return self._failures >= DOWN

    @property
    def given_up(self) -> bool:
        """It has served nobody for all of `PATIENCE`."""
        return self._waited >= PATIENCE

    @property
    def waited(self) -> float:
        """Seconds of pauses since anyone was served."""
        return self._waited

    def take(self) -> None:
        """Lets a call through."""
        self.flying += 1

    def free(self) -> None:
        """A call has ended; whoever waits may go."""
        self.flying -= 1
        self.admit()

    def admit(self) -> None:
        """Tells those who wait, most urgent first."""
        for queue in sorted(self.queues, key=lambda each: each.first):
            queue.admit()

    def served(self) -> None:
        """A call was answered; widens the gate where it was full."""
        if self.flying >= int(self.width):
            step = 1.0 / self.width if self._slowly else 1.0
            self.width = min(self.width + step, float(max(1, self.limit)))
        if self.down:
            self._tell("an endpoint that was down answers again")
        self._limits, self._failures, self._waited = 0, 0, 0.0

    def limited(self, retry_after: float | None, burst: int, jitter: float) -> None:
        """A call begun in `burst` was told to slow down; halves and shuts the gate, once each."""
        if burst != self.bursts:
            return
        self.bursts += 1
        self._limits += 1
        self._slowly = True
        self.width = max(1.0, self.width / 2)
        seconds = spread(self._limits, jitter) + (retry_after or 0.0)
        if seconds >= _LONG_S:
            self._tell(f"waiting {seconds:,.0f} s, as an endpoint asks to slow down")
        self._pause(seconds)

    def failed(self, error: Exception, jitter: float) -> None:
        """A call failed in a way that may pass; shuts the gate where it is one of too many."""
        self._failures += 1
        if self._failures == DOWN:
            self._tell(f"taken for down, and tried again now and then: {error}")
        if self.down and self._shut is None:
            self.width = 1.0
            self._slowly = False
            self._pause(spread(self._failures - DOWN + 1, jitter))

    def _pause(self, seconds: float) -> None:
        self._waited += seconds
        self._shut = asyncio.create_task(self._cool(seconds, self._shut))

    async def _cool(self, seconds: float, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await before
            await self._halt.pause(seconds)
        except Stopped:
            # Those waiting are let in to hear it themselves.
            pass
        finally:
            if self._shut is asyncio.current_task():
                self._shut = None
            self.admit()


def spread(tries: int, jitter: float) -> float:
    """Seconds to wait after so many tries, doubling, spread by a draw in [0, 1)."""
    return min(_LONGEST, _BASE * 2.0 ** min(tries - 1, 10)) * (0.5 + jitter / 2)
