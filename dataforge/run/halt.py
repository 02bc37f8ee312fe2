"""The one place that knows whether a run is to stop, and why.

Stopping is asked for once and seen everywhere: no new walk begins, no new call is made, a pause
ends early, and calls in flight are waited for, so that what was paid for is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

__all__ = ["Halt", "Sleep", "Stopped"]

Sleep = Callable[[float], Awaitable[None]]
"""Waits for so many seconds; tests pass one that does not."""


class Stopped(BaseException):
    """Unwinds a walk that is to be taken up later; no `Exception`, so that no node swallows it."""


class Halt:
    """Whether this run is to stop."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self.cause: Exception | None = None
        """The error that stopped the run; None when nothing did, the user did or a budget did."""
        self.why = ""
        """What asked it to stop, in words, where that was a budget."""
        self._sleep = sleep
        self._asked = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    @property
    def asked(self) -> bool:
        """Stopping was asked for."""
        return self._asked.is_set()

    def stop(self, cause: Exception | None = None, why: str = "") -> None:
        """Asks the run to stop; the first cause given is kept."""
        if self.cause is None:
            self.cause = cause
        if self.asked:
            return
        self.why = why
        self._asked.set()
        for listener in self._listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Has `listener` called once stopping is asked for."""
        self._listeners.append(listener)

    def check(self) -> None:
        """Raises `Stopped` once stopping was asked for."""
        if self.asked:
            raise Stopped

    async def pause(self, seconds: float) -> None:
        """Waits, and raises `Stopped` as soon as stopping is asked for."""
        waits = [
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.ensure_future(self._asked.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self.check()
