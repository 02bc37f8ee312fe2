"""What one process of a cluster does for a run: makes the walks of the parts it is given.

It reads graph, seeds and models from the request as the command itself does, so all machines need
the same files and the same installation; a fingerprint says whether they have them. What happens is
kept until it is asked for, with the texts left out: they are on disk.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import replace

from dataforge.commands.ordering import Request, make_order
from dataforge.errors import RunError, RunLocked
from dataforge.library.graphs import load_graph
from dataforge.library.root import find_library
from dataforge.run.aim import Aim
from dataforge.run.budget import NO_BUDGET
from dataforge.run.events import CallEnded, Event, WalkEnded
from dataforge.run.garbage import collect_seldom
from dataforge.run.halt import Halt
from dataforge.run.lock import hold
from dataforge.run.logs import part_name
from dataforge.run.manifest import Manifest
from dataforge.run.parts import Part
from dataforge.run.schedule import Plan
from dataforge.run.shift import shift
from dataforge.run.sitting import Sitting

__all__ = ["Hand"]

_LOCKED_TRIES = 30


class Hand:
    """Makes the walks of parts, one part at a time; runs in a process of its own."""

    def __init__(self, request: Request, manifest: Manifest, folder: str) -> None:
        """`folder`: the working directory that the request's paths are meant from."""
        os.chdir(folder)
        self._request = request
        self._manifest = manifest
        self._stack = AsyncExitStack()
        self._sitting: Sitting | None = None
        self._halt = Halt()
        self._events: list[Event] = []

    async def walk(self, part: Part) -> Exception | None:
        """Makes the walks of a part that are not made yet; what stopped it, if anything did."""
        if self._sitting is None:
            self._sitting = await self._open()
        folder = self._request.out / part_name(part.number)
        for _ in range(_LOCKED_TRIES):
            try:
                with hold(folder):
                    await shift(self._sitting, folder, part.start, part.stop)
                return self._halt.cause
            except RunLocked:
                # The process that had it may be dying; the kernel lets go when it is dead.
                await asyncio.sleep(1)
        raise RunError(f"{folder}: still held by another process, which is to be stopped")

    async def told(self) -> list[Event]:
        """What happened since the last asking."""
        events, self._events = self._events, []
        return events

    async def stop(self) -> None:
        """Begins no new walk, and finishes the calls in flight."""
        self._halt.stop()

    async def close(self) -> None:
        """Closes the models."""
        await self._stack.aclose()

    async def _open(self) -> Sitting:
        collect_seldom()
        library = find_library(self._request.library)
        loaded = load_graph(self._request.graph, library)
        order = await make_order(self._request, library, loaded, self._stack, lambda text: None)
        # Budgets are kept by whoever hears of all hands.
        order = replace(order, walks=self._manifest.walks, budget=NO_BUDGET)
        here = Manifest.of(order, (), parted=True)
        if here.fingerprint != self._manifest.fingerprint:
            found = "; ".join(self._manifest.differences(here))
            raise RunError(f"{os.uname().nodename}: this machine has other inputs: {found}")
        return Sitting(
            order=order,
            folder=self._request.out,
            manifest=self._manifest,
            plan=Plan(order.seeds.ids(), order.walks, order.run_seed),
            aim=Aim(None),
            watch=self._watch,
            halt=self._halt,
        )

    def _watch(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            event = replace(event, reply=replace(event.reply, text=""))
        elif isinstance(event, WalkEnded):
            bare = {"attempts": (), "messages": (), "passage": ""}
            event = replace(event, end=event.end.model_copy(update=bare))
        self._events.append(event)
