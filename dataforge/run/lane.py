"""The queue in front of one transport: how many calls at once, and what a failure costs.

A lane finds out how wide it may be. It opens with a few calls, widens as they are answered, and
halves when the endpoint says to slow down: once for a whole burst of refusals, with one pause that
all its calls share, so that a hundred calls refused together cost one step back and not a hundred.
After that it widens slowly (additive increase, multiplicative decrease: Chiu and Jain, 1989). A
rate limit never counts against a call and is tried again for as long as the endpoint keeps serving
anyone; other failures that may pass are waited out with no slot held, a few times a call.

Of those waiting, the call of the walk nearest to its end goes first, so that walks end and what
they hold is let go. It does not spread calls over several endpoints.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NoReturn

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    RateLimited,
    RequestRefused,
    TransientModelError,
)
from dataforge.models.base import Message, Params, Reply, Transport
from dataforge.run.halt import Halt, Stopped

__all__ = ["OPENING", "PATIENCE", "TRIES", "Lane"]

TRIES = 6
"""How often a call may fail in a way that may pass before its walk fails."""

PATIENCE = 900.0
"""Seconds a lane has waited on rate limits, with no answer to any call, before the run stops."""

OPENING = 8
"""Calls at once that a lane begins with, where its transport takes as many."""

_BASE = 0.5
_LONGEST = 60.0


class Lane:
    """Calls of one transport, at most `transport.limit` at a time."""

    def __init__(self, transport: Transport, halt: Halt) -> None:
        self.transport = transport
        self.width = float(max(1, min(transport.limit, OPENING)))
        """Calls that may be in flight now, from 1 to the transport's limit; a part is not one."""
        self._halt = halt
        self._flying = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._came = count()
        self._cooling: asyncio.Task[None] | None = None
        self._bursts = 0
        """Bursts of rate limits so far; a call refused in one it began before is part of that."""
        self._in_a_row = 0
        """Bursts since anyone was served."""
        self._waited = 0.0
        """Seconds of pauses since anyone was served."""

    async def complete(
        self,
        messages: Sequence[Message],
        params: Params,
        jitter: Callable[[int], float],
        left: int = 0,
    ) -> tuple[Reply, float]:
        """The reply and the seconds it took; `jitter(n)` in [0, 1) spreads the n-th wait.

        `left`: steps the walk has before it; the fewest go first. Raises TransientModelError after
        `TRIES` failures, ContextOverflow and RequestRefused at once, and FatalModelError, having
        asked the run to stop, when no retry can help.
        """
        failures = limits = 0
        while True:
            await self._enter(left)
            began, burst = time.monotonic(), self._bursts
            try:
                self._halt.check()
                reply = await self.transport.complete(messages, params)
            except RateLimited as error:
                limits += 1
                self._slow_down(error, burst, jitter(failures + limits))
                continue
            except TransientModelError:
                failures += 1
                if failures >= TRIES:
                    raise
            except (ContextOverflow, RequestRefused):
                # An answer all the same: the endpoint serves.
                self._served()
                raise
            except FatalModelError as error:
                self._stop(error)
            else:
                self._served()
                return reply, time.monotonic() - began
            finally:
                self._flying -= 1
                self._admit()
            await self._halt.pause(_spread(failures, jitter(failures + limits)))

    async def _enter(self, left: int) -> None:
        """Waits for a slot and takes it."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (left, next(self._came), place))
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self._flying -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Gives free slots to those waiting; while it cools, only to send them home at a stop."""
        while self._waiting and (self._halt.asked or self._may_fly()):
            _, _, place = heappop(self._waiting)
            if not place.done():
                self._flying += 1
                place.set_result(None)

    def _may_fly(self) -> bool:
        return self._cooling is None and self._flying < int(self.width)

    def _served(self) -> None:
        """Widens the lane where it was full: at once at first, slowly after a rate limit."""
        if self._flying >= int(self.width):
            step = 1.0 / self.width if self._bursts else 1.0
            self.width = min(self.width + step, float(max(1, self.transport.limit)))
        self._in_a_row, self._waited = 0, 0.0

    def _slow_down(self, error: RateLimited, burst: int, jitter: float) -> None:
        """Halves the lane and pauses it, once for all calls refused in one burst."""
        if burst != self._bursts:
            return
        if self._waited >= PATIENCE:
            self._stop(_worn_out(error, self._waited))
        self._bursts += 1
        self._in_a_row += 1
        self.width = max(1.0, self.width / 2)
        wait = _spread(self._in_a_row, jitter) + (error.retry_after or 0.0)
        self._waited += wait
        self._cooling = asyncio.create_task(self._cool(wait, self._cooling))

    async def _cool(self, wait: float, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await before
            await self._halt.pause(wait)
        except Stopped:
            # Those waiting are let in to hear it themselves.
            pass
        finally:
            if self._cooling is asyncio.current_task():
                self._cooling = None
            self._admit()

    def _stop(self, error: FatalModelError) -> NoReturn:
        self._halt.stop(error)
        raise error


def _spread(tries: int, jitter: float) -> float:
    return min(_LONGEST, _BASE * 2.0 ** min(tries - 1, 10)) * (0.5 + jitter / 2)


def _worn_out(error: RateLimited, waited: float) -> FatalModelError:
    return FatalModelError(
        f"{error}; no call was served in {waited / 60:.0f} minutes of waiting. "
        "Give the same command again later: it repeats no finished call"
    )
