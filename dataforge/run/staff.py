"""Who serves a run's roles: lanes, the workers in them, and the gates of their endpoints.

A model has one lane, whichever roles it plays; an endpoint has one gate, whichever models it
serves, with the smallest of the limits that were given for it. In a `with`, files of workers are
followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from dataforge.models.pool import address_of
from dataforge.models.specs import open_model, read_spec
from dataforge.run.events import Said, Watch
from dataforge.run.gate import Gate
from dataforge.run.halt import Halt
from dataforge.run.lane import Lane, Worker
from dataforge.run.roles import OpenModel, Role, Served
from dataforge.run.roster import Roster

__all__ = ["Staff"]


class Staff:
    """The lanes of one sitting."""

    def __init__(self, players: Mapping[str, Role], halt: Halt, watch: Watch) -> None:
        """`watch` hears of calls that failed, and of workers that join, leave or are lost."""
        self.lanes: dict[str, Lane] = {}
        """Role -> lane, for every role that a model plays."""
        self._halt = halt
        self._watch = watch
        self._gates: dict[str, Gate] = {}
        self._rosters: list[Roster] = []
        self._watching: list[asyncio.Task[None]] = []
        lanes: dict[int, Lane] = {}
        for role, player in players.items():
            if isinstance(player, OpenModel):
                known = lanes.get(id(player))
                self.lanes[role] = lanes[id(player)] = known or self._open(player)

    async def __aenter__(self) -> Self:
        for roster in self._rosters:
            self._watching.append(asyncio.create_task(roster.watch(self._halt)))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        for roster in self._rosters:
            await roster.close()

    def _open(self, player: OpenModel) -> Lane:
        workers = {each.spec: self._worker(each) for each in player.served}
        lane = Lane(player.weights, workers.values(), self._halt, self._watch)
        if player.workers is not None:
            self._rosters.append(Roster(player.workers, lane, workers, self._hire, self._watch))
        return lane

    def _hire(self, spec: str) -> Worker:
        share = read_spec(spec).share
        return self._worker(Served(open_model(spec), spec, address_of(spec), share))

    def _say(self, text: str) -> None:
        self._watch(Said(text))

    def _worker(self, served: Served) -> Worker:
        limit = served.transport.limit
        address = served.address or f"#{id(served.transport)}"
        gate = self._gates.setdefault(address, Gate(limit, self._halt, self._say))
        gate.limit = min(gate.limit, limit)
        gate.width = min(gate.width, float(max(1, gate.limit)))
        return Worker(served.transport, gate, served.share)
