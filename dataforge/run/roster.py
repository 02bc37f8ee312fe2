"""Workers that come and go while a run goes on, after a file that is looked at every second.

A worker added to the file is asked from the next call on. One taken out is asked nothing more and
finishes what it has. A file that cannot be read changes nothing, and is told of once a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from dataforge.errors import DataForgeError, InputError
from dataforge.models.specs import weights_of
from dataforge.models.workers import read_workers, stamp
from dataforge.run.events import Said, Watch
from dataforge.run.halt import Halt, Stopped
from dataforge.run.lane import Lane, Worker

__all__ = ["Roster"]

_EVERY_S = 1.0


class Roster:
    """The workers of one lane, as a file lists them."""

    def __init__(
        self,
        path: Path,
        lane: Lane,
        known: dict[str, Worker],
        hire: Callable[[str], Worker],
        watch: Watch,
    ) -> None:
        """`known`: the lane's workers by spec; `hire` opens one of a spec; `watch` hears of
        changes.
        """
        self._path = path
        self._lane = lane
        self._known = known
        self._hired: set[Worker] = set()
        self._hire = hire
        self._watch = watch
        self._leaving: set[asyncio.Task[None]] = set()

    async def watch(self, halt: Halt) -> None:
        """Follows the file until the run is to stop or this is cancelled."""
        seen = None
        try:
            while True:
                now = stamp(self._path)
                if now != seen:
                    seen = now
                    self._follow()
                await halt.pause(_EVERY_S)
        except Stopped:
            return

    async def close(self) -> None:
        """Closes the workers it has hired."""
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        for worker in self._hired:
            await worker.transport.close()

    def _follow(self) -> None:
        try:
            listed = self._listed()
            new: dict[str, Worker] = {}
            for spec in listed:
                if spec not in self._known:
                    new[spec] = self._hire(spec)
                    self._hired.add(new[spec])
        except DataForgeError as error:
            self._watch(Said(f"the workers stay as they are: {error}"))
            return
        for spec, worker in new.items():
            self._known[spec] = worker
            self._lane.join(worker)
            self._watch(Said(f"a worker joins: {spec}"))
        for spec in self._known.keys() - set(listed):
            self._watch(Said(f"a worker leaves: {spec}"))
            task = asyncio.create_task(self._dismiss(self._known.pop(spec)))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        if not self._lane.workers:
            self._watch(Said(f"no worker is left in {self._path}; calls wait until one joins"))

    def _listed(self) -> tuple[str, ...]:
        listed = read_workers(self._path)
        # A file is of one model throughout, yet may have become another's since the run began.
        for weights in map(weights_of, listed[:1]):
            if weights != self._lane.weights:
                raise InputError(
                    f"{self._path}: lists workers of {weights}, and the run's model is "
                    f"{self._lane.weights}; if they are the same, say so with ?weights=NAME"
                )
        return listed

    async def _dismiss(self, worker: Worker) -> None:
        await self._lane.leave(worker)
        if worker in self._hired:
            await worker.transport.close()
            self._hired.discard(worker)
