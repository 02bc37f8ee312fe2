"""A run: seeds in, a corpus out, in one directory that any sitting of the same command continues.

Two limits are kept apart: `concurrency` bounds the walks in memory, and each endpoint's gate
bounds its calls. Walks are begun lazily, so memory follows what is in flight, and end one by one on
disk.
One process and one event loop do all of it; spreading a run over machines is not done here.

A run directory: `run.json` (what it was begun with), `lock`, `calls.jsonl` (the journal),
`walks.jsonl` (one line an ended walk), and, made from those, `corpus.parquet`, `calls.parquet`,
`report.json`, `report.md`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dataforge.errors import DataForgeError, FatalModelError, RunError, UsageError
from dataforge.models.text import clean
from dataforge.plan.graph import Graph
from dataforge.plan.route import Route
from dataforge.run.aim import Aim
from dataforge.run.budget import NO_BUDGET, Budget
from dataforge.run.events import Event, RunBegan, Said, WalkEnded, Watch
from dataforge.run.finish import JOURNAL, WALKS, Ended, EndedWalks, ended_walks, make_corpus
from dataforge.run.halt import Halt, Stopped
from dataforge.run.journal import Journal
from dataforge.run.lock import hold
from dataforge.run.log import Log
from dataforge.run.manifest import Manifest, settle
from dataforge.run.policy import Policy, policy
from dataforge.run.report import Report, make_report, write_report
from dataforge.run.roles import Role, check_roles
from dataforge.run.sampling import Draws
from dataforge.run.schedule import Plan, Planned, walk_id
from dataforge.run.seed import SeedStore
from dataforge.run.staff import Staff
from dataforge.run.state import entry
from dataforge.run.tally import Tally, conserve
from dataforge.run.trace import WalkEnd
from dataforge.run.walk import Ground, Walk
from dataforge.run.weights import check_weights

__all__ = ["Order", "forge"]

SEEDS = "seeds"
"""The node that a walk is counted under when its passage is another seed's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be made, and how."""

    graph: Graph
    """Promises `messages` at its target."""
    players: Mapping[str, Role]
    """Role -> who plays it, for every role of the graph."""
    seeds: SeedStore
    walks: int
    """How many walks in all, at most; spread over the seeds by `run_seed`."""
    accept: int | None = None
    """Make no more walks than it takes to have so many accepted; None: all of them."""
    run_seed: int = 0
    policy: Policy = "uniform"
    """By which rule walks are chosen."""
    budget: Budget = NO_BUDGET
    """What this sitting may spend."""
    concurrency: int = 8
    """Most walks in flight at once; changes nothing of what is made."""
    allow_shared_weights: bool = False
    """Let a judge judge its own weights' output, on the record."""
    accept_changes: bool = False
    """Go on in a directory begun with other inputs, walking again what they change."""
    judge_card: str = ""
    """What is known of the judge, for the report."""
    skipped_seeds: Sequence[str] = ()
    """Lines that could not be used, for the report; the first of them where they are many."""
    skipped_count: int = 0
    """How many there were in all."""


async def forge(order: Order, folder: Path, watch: Watch, halt: Halt) -> Report:
    """Makes or continues the run in `folder` until it is done or `halt` asks to stop.

    Whatever ends it, all that was finished is on disk and the tables hold it. Raises what stopped
    it: FatalModelError, RunError; and before any call UsageError, SharedWeights, RunLocked,
    RunMismatch.
    """
    _check(order)
    overrides = check_weights(order.graph, order.players, order.allow_shared_weights)
    with hold(folder):
        manifest = Manifest.of(
            order.graph,
            order.players,
            order.seeds,
            run_seed=order.run_seed,
            policy=order.policy,
            walks=order.walks,
            overrides=overrides,
        )
        manifest = settle(folder, manifest, order.accept_changes)
        try:
            report = await _Sitting(order, folder, manifest, watch, halt).go()
        except (DataForgeError, OSError) as error:
            # A disk that filled refuses the tables too; what stopped the run says it better.
            if halt.cause is None or halt.cause is error:
                raise
            raise halt.cause from error
    if halt.cause is not None:
        raise halt.cause
    return report


class _Due(NamedTuple):
    """A walk to make."""

    place: int
    """In the plan, from 0."""
    planned: Planned
    name: str
    route: Route


class _Kept:
    """Walks that ended in earlier sittings and are not walked again."""

    def __init__(self, ended: EndedWalks) -> None:
        self._ended = ended

    def get(self, name: str) -> Ended | None:
        """How the walk of an id ended, if it stays so."""
        end = self._ended.get(name)
        return None if end is None or end.outcome == "failed" else end


class _Sitting:
    """One process's turn at a run."""

    def __init__(
        self, order: Order, folder: Path, manifest: Manifest, watch: Watch, halt: Halt
    ) -> None:
        self._order = order
        self._folder = folder
        self._manifest = manifest
        self._watch = watch
        self._halt = halt
        self._tally = Tally()
        self._plan = Plan(order.seeds.ids(), order.walks, order.run_seed)
        self._aim = Aim(order.accept)

    async def go(self) -> Report:
        began = time.monotonic()
        walks = Log.open(self._folder / WALKS)
        kept = _Kept(ended_walks(self._folder, self._manifest.fingerprint))
        journal = Journal.open(self._folder / JOURNAL, lambda name: kept.get(name) is None)
        self._tell(walks, journal.log, kept)
        clock = self._clock()
        try:
            await self._walk_all(walks, journal, kept)
            await journal.settled()
        finally:
            clock.cancel()
            await journal.close()
            await walks.close()
        self._say("writing the corpus")
        return self._finish(time.monotonic() - began)

    def _clock(self) -> asyncio.TimerHandle:
        """Stops the sitting when its time is over."""
        budget, loop = self._order.budget, asyncio.get_running_loop()
        seconds = budget.seconds
        stop = partial(self._halt.stop, why=budget.timed_out() if seconds is not None else "")
        timer = loop.call_later(seconds or 0.0, stop)
        if seconds is None:
            timer.cancel()
        return timer

    def _tell(self, walks: Log, calls: Log, kept: _Kept) -> None:
        ended = Counter(end.outcome for end in self._ends(kept.get, self._plan))
        self._tell_watcher(RunBegan(self._order.walks, ended["accepted"], ended["rejected"]))
        for log in (walks, calls):
            if log.cut:
                cut = f"{log.path.name}: cut {log.cut} bytes of a line left half-written"
                self._say(cut)
            if log.damaged:
                passed = f"{log.path.name}: passed over {log.damaged} damaged lines"
                self._say(passed)

    async def _walk_all(self, walks: Log, journal: Journal, kept: _Kept) -> None:
        staff = Staff(self._order.players, self._halt, self._say)
        ground = Ground(
            graph=self._order.graph,
            fingerprint=self._manifest.fingerprint,
            players=self._order.players,
            lanes=staff.lanes,
            journal=journal,
            halt=self._halt,
            watch=self._tell_watcher,
        )
        todo = self._todo(kept)
        workers = min(self._order.concurrency, self._order.walks)
        async with staff, asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(ground, walks, todo))

    def _todo(self, kept: _Kept) -> Iterator[_Due]:
        """The walks to make, until enough are accepted."""
        routes = policy(self._order.policy, self._order.graph)
        for place, planned in enumerate(self._plan):
            if self._aim.reached:
                return
            name = self._name(planned)
            end = kept.get(name)
            if end is not None:
                self._aim.see(place, end.outcome)
            else:
                draws = Draws(self._order.run_seed, planned.seed_id, planned.walk)
                yield _Due(place, planned, name, routes(draws, place))

    async def _work(self, ground: Ground, walks: Log, todo: Iterator[_Due]) -> None:
        for place, planned, name, route in todo:
            if self._halt.asked:
                return
            try:
                end = await self._walk(ground, planned, name, route)
                await walks.append(end.model_dump_json().encode())
            except Stopped:
                return
            except (FatalModelError, RunError) as error:
                self._halt.stop(error)
                return
            self._aim.see(place, end.outcome)
            self._tell_watcher(WalkEnded(end))

    async def _walk(self, ground: Ground, planned: Planned, name: str, route: Route) -> WalkEnd:
        seed = self._order.seeds[planned.seed]
        passage = clean(seed.passage)
        twin = self._order.seeds.twin(planned.seed)
        if twin is not None:
            return WalkEnd(
                id=name,
                fingerprint=ground.fingerprint,
                seed_id=clean(seed.id),
                walk=planned.walk,
                passage=passage,
                outcome="rejected",
                node=SEEDS,
                reason="same passage as an earlier seed",
                detail=clean(f"same passage as seed {twin}"),
            )
        fields = {name: clean(value) for name, value in seed.meta.items()} | {"passage": passage}
        draws = Draws(self._order.run_seed, seed.id, planned.walk)
        walk = Walk(ground, name, draws, passage, route)
        return await walk.make(entry(ground.graph.preconditions, fields))

    def _name(self, planned: Planned) -> str:
        order = self._order
        return walk_id(order.graph.name, order.run_seed, planned.seed_id, planned.walk)

    def _ends(
        self, ended: Callable[[str], Ended | None], planned: Iterable[Planned]
    ) -> Iterator[Ended]:
        """How those of the planned walks ended that did."""
        return (end for end in map(ended, map(self._name, planned)) if end is not None)

    def _say(self, text: str) -> None:
        self._tell_watcher(Said(text))

    def _tell_watcher(self, event: Event) -> None:
        self._tally.see(event)
        if passed := self._order.budget.passed(self._tally):
            self._halt.stop(why=passed)
        self._watch(event)

    def _finish(self, seconds: float) -> Report:
        ended = ended_walks(self._folder, self._manifest.fingerprint)
        on_disk = Counter(end.outcome for end in self._ends(ended.get, self._plan))
        reached = self._aim.reached
        pending = conserve(self._tally, on_disk, self._halt.asked or reached)
        walks = self._aim.length or self._order.walks

        def ends() -> Iterator[Ended]:
            return self._ends(ended.get, self._plan.by_seed(walks))

        make_corpus(self._folder, ends)
        report = make_report(
            self._folder,
            self._manifest,
            Counter((end.outcome, end.node, end.reason) for end in ends()),
            self._tally,
            walks=walks,
            pending=0 if reached else pending,
            stopped="" if reached else self._halt.why,
            seconds=seconds,
            judge_card=self._order.judge_card,
            skipped_seeds=self._order.skipped_seeds,
            skipped_count=self._order.skipped_count,
        )
        write_report(report, self._folder)
        return report


def _check(order: Order) -> None:
    check_roles(order.graph.roles, order.players)
    promised = order.graph.postconditions.get("messages")
    if promised is None or promised.maybe:
        raise UsageError(
            f"graph {order.graph.name} does not promise `messages` at its target, and a run makes "
            "samples of them: end it with a node that writes them, such as sample/chat"
        )
    if not len(order.seeds):
        raise UsageError(f"{order.seeds.path}: no seed to walk from")
    if order.walks < 1 or order.concurrency < 1:
        raise UsageError("a run needs at least 1 walk and a concurrency of at least 1")
