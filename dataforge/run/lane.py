"""The queue in front of one transport: how many calls at once, and what a failure costs.

A rate limit and a failure that may pass are waited out here, with no slot held, and the node above
never learns of them. A rate limit is tried again for as long as the endpoint keeps serving anyone;
a call that fails again and again fails its walk. It does not adapt its width, and it does not
spread calls over several endpoints.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    RateLimited,
    RequestRefused,
    TransientModelError,
)
from dataforge.models.base import Message, Params, Reply, Transport
from dataforge.run.halt import Halt

__all__ = ["PATIENCE", "TRIES", "Lane"]

TRIES = 6
"""How often a call may fail in a way that may pass before its walk fails."""

PATIENCE = 900.0
"""Seconds a call has waited on rate limits, with no answer to any call, before the run stops."""

_BASE = 0.5
_LONGEST = 60.0


class Lane:
    """Calls of one transport, at most `transport.limit` at a time."""

    def __init__(self, transport: Transport, halt: Halt) -> None:
        self.transport = transport
        self._halt = halt
        self._slots = asyncio.Semaphore(max(1, transport.limit))
        self._served = 0

    async def complete(
        self, messages: Sequence[Message], params: Params, jitter: Callable[[int], float]
    ) -> tuple[Reply, float]:
        """The reply and the seconds it took; `jitter(n)` in [0, 1) spreads the n-th wait.

        Raises TransientModelError after `TRIES` failures, ContextOverflow and RequestRefused at
        once, and FatalModelError, having asked the run to stop, when no retry can help.
        """
        failures = limits = 0
        waited, served = 0.0, self._served
        while True:
            async with self._slots:
                self._halt.check()
                began = time.monotonic()
                try:
                    reply = await self.transport.complete(messages, params)
                except RateLimited as error:
                    limits += 1
                    if self._served != served:
                        waited, served = 0.0, self._served
                    if waited >= PATIENCE:
                        self._stop(_worn_out(error, waited))
                    wait = _spread(limits, jitter(failures + limits)) + (error.retry_after or 0.0)
                    waited += wait
                except TransientModelError:
                    failures += 1
                    if failures >= TRIES:
                        raise
                    wait = _spread(failures, jitter(failures + limits))
                except (ContextOverflow, RequestRefused):
                    # An answer all the same: the endpoint serves.
                    self._served += 1
                    raise
                except FatalModelError as error:
                    self._stop(error)
                else:
                    self._served += 1
                    return reply, time.monotonic() - began
            await self._halt.pause(wait)

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
