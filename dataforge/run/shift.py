"""A stretch of a run's walks, made by this process in one folder of logs.

Walks are begun lazily, in the order of the plan, and end one by one on disk; two limits are kept
apart, the order's `concurrency` for the walks in memory and each endpoint's gate for its calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dataforge.models.text import clean
from dataforge.plan.route import Route
from dataforge.run.events import WalkEnded
from dataforge.run.finish import Ended, EndedWalks
from dataforge.run.halt import Stopped
from dataforge.run.journal import Journal
from dataforge.run.log import Log
from dataforge.run.logs import JOURNAL, WALKS
from dataforge.run.policy import policy
from dataforge.run.sampling import Draws
from dataforge.run.schedule import Planned
from dataforge.run.sitting import Sitting
from dataforge.run.staff import Staff
from dataforge.run.state import entry
from dataforge.run.trace import WalkEnd
from dataforge.run.walk import Ground, Walk

__all__ = ["Alone", "shift"]

_SEEDS = "seeds"
"""The node that a walk is counted under when its passage is another seed's."""


class Alone:
    """The crew of one process: all walks, in the run directory itself."""

    parted = False

    async def walk(self, sitting: Sitting) -> None:
        """Makes all walks of the plan that are not made yet."""
        await shift(sitting, sitting.folder, 0, sitting.plan.total)


async def shift(sitting: Sitting, folder: Path, start: int, stop: int) -> None:
    """Makes the walks at places `start` to `stop` of the plan whose logs are in `folder`.

    Goes on where an earlier shift over the same folder left off. Ends early when the aim is reached
    or the halt asks for it. Whatever ends it, all that was finished is on disk.
    """
    walks = Log.open(folder / WALKS)
    kept = _Kept(EndedWalks(folder, [""], sitting.manifest.fingerprint))
    journal = Journal.open(folder / JOURNAL, lambda name: kept.get(name) is None)
    for log in (walks, journal.log):
        if log.cut:
            sitting.say(f"{log.path.name}: cut {log.cut} bytes of a line left half-written")
        if log.damaged:
            sitting.say(f"{log.path.name}: passed over {log.damaged} damaged lines")
    try:
        await _Shift(sitting, walks, journal, kept).go(start, stop)
    finally:
        await journal.close()
        await walks.close()


class _Due(NamedTuple):
    """A walk to make."""

    place: int
    """In the plan, from 0."""
    planned: Planned
    name: str
    draws: Draws
    route: Route


class _Kept:
    """Walks that ended in earlier sittings and are not walked again."""

    def __init__(self, ended: EndedWalks) -> None:
        self._ended = ended if len(ended) else None

    def get(self, name: str) -> Ended | None:
        """How the walk of an id ended, if it stays so."""
        end = self._ended.get(name) if self._ended else None
        return None if end is None or end.outcome == "failed" else end


class _Shift:
    def __init__(self, sitting: Sitting, walks: Log, journal: Journal, kept: _Kept) -> None:
        self._sitting = sitting
        self._order = sitting.order
        self._walks = walks
        self._journal = journal
        self._kept = kept

    async def go(self, start: int, stop: int) -> None:
        sitting, order = self._sitting, self._order
        staff = Staff(order.players, sitting.halt, sitting.watch)
        ground = Ground(
            graph=order.graph,
            fingerprint=sitting.manifest.fingerprint,
            players=order.players,
            lanes=staff.lanes,
            journal=self._journal,
            halt=sitting.halt,
            watch=sitting.watch,
        )
        todo = self._todo(start, stop)
        async with staff:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(order.concurrency, stop - start)):
                    group.create_task(self._work(ground, todo))
            # Before the workers that were hired are closed, who may still have a reply coming.
            await self._journal.settled()

    def _todo(self, start: int, stop: int) -> Iterator[_Due]:
        """The walks to make, until enough are accepted."""
        sitting, order = self._sitting, self._order
        routes = policy(order.policy, order.graph)
        begun = 0
        for place, planned in enumerate(sitting.plan.stretch(start, stop), start):
            if sitting.aim.reached or begun == order.budget.walks:
                return
            name = sitting.name(planned)
            end = self._kept.get(name)
            if end is not None:
                sitting.aim.see(place, end.outcome)
            else:
                begun += 1
                draws = Draws(order.run_seed, planned.seed_id, planned.walk)
                yield _Due(place, planned, name, draws, routes(draws, place))

    async def _work(self, ground: Ground, todo: Iterator[_Due]) -> None:
        sitting = self._sitting
        try:
            for due in todo:
                if sitting.halt.asked:
                    return
                end = await self._walk(ground, due)
                await self._walks.append(end.model_dump_json().encode())
                sitting.aim.see(due.place, end.outcome)
                sitting.watch(WalkEnded(end))
        except Stopped:
            return
        except Exception as error:
            # Whatever it is, a bug too: others' calls in flight are finished and kept before the
            # run raises it.
            sitting.halt.stop(error)

    async def _walk(self, ground: Ground, due: _Due) -> WalkEnd:
        seed = self._order.seeds[due.planned.seed]
        passage = clean(seed.passage)
        twin = self._order.seeds.twin(due.planned.seed)
        if twin is not None:
            return WalkEnd(
                id=due.name,
                fingerprint=ground.fingerprint,
                seed_id=clean(seed.id),
                walk=due.planned.walk,
                passage=passage,
                outcome="rejected",
                node=_SEEDS,
                reason="same passage as an earlier seed",
                detail=clean(f"same passage as seed {twin}"),
            )
        fields = {name: clean(value) for name, value in seed.meta.items()} | {"passage": passage}
        walk = Walk(ground, due.name, due.draws, passage, due.route)
        return await walk.make(entry(ground.graph.preconditions, fields))
