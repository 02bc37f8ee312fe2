"""A run: seeds in, a corpus out, in one directory that any sitting of the same command continues.

This process plans the walks, has a crew make them, itself by default, and makes the tables of what
is then on disk.

A run directory: `run.json` (what it was begun with), `lock`, `calls.jsonl` (the journal),
`walks.jsonl` (one line an ended walk), and, made from those, `corpus.parquet`, `calls.parquet`,
`report.json`, `report.md`. Where a crew of several made it, `parts/` holds the two logs of each.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from pathlib import Path

from dataforge.errors import DataForgeError
from dataforge.run.aim import Aim
from dataforge.run.events import Event, RunBegan, Watch
from dataforge.run.finish import ended_walks, kept_in_order, make_corpus
from dataforge.run.halt import Halt
from dataforge.run.lock import hold
from dataforge.run.manifest import Manifest, settle
from dataforge.run.order import Order, check_order
from dataforge.run.report import Report, make_report, write_report
from dataforge.run.schedule import Plan
from dataforge.run.shift import Alone
from dataforge.run.sitting import Crew, Sitting
from dataforge.run.tally import Tally, conserve
from dataforge.run.trace import Outcome
from dataforge.run.weights import check_weights

__all__ = ["Order", "forge"]


async def forge(
    order: Order, folder: Path, watch: Watch, halt: Halt, crew: Crew | None = None
) -> Report:
    """Makes or continues the run in `folder` until it is done or `halt` asks to stop.

    Whatever ends it, all that was finished is on disk and the tables hold it. Raises what stopped
    it: FatalModelError, RunError; and before any call UsageError, SharedWeights, RunLocked,
    RunMismatch.
    """
    check_order(order)
    overrides = check_weights(order.graph, order.players, order.allow_shared_weights)
    crew = crew or Alone()
    with hold(folder):
        manifest = Manifest.of(order, overrides, parted=crew.parted)
        manifest = settle(folder, manifest, order.accept_changes)
        try:
            report = await _Forge(order, folder, manifest, watch, halt, crew).go()
        except (DataForgeError, OSError) as error:
            # A disk that filled refuses the tables too; what stopped the run says it better.
            if halt.cause is None or halt.cause is error:
                raise
            raise halt.cause from error
    if halt.cause is not None:
        raise halt.cause
    return report


class _Forge:
    def __init__(
        self,
        order: Order,
        folder: Path,
        manifest: Manifest,
        watch: Watch,
        halt: Halt,
        crew: Crew,
    ) -> None:
        self._order = order
        self._halt = halt
        self._watch = watch
        self._crew = crew
        self._tally = Tally()
        self._sitting = Sitting(
            order=order,
            folder=folder,
            manifest=manifest,
            plan=Plan(order.seeds.ids(), order.walks, order.run_seed),
            aim=Aim(order.accept),
            watch=self._see,
            halt=halt,
        )

    async def go(self) -> Report:
        began = time.monotonic()
        earlier = self._on_disk()
        counts = (self._order.walks, earlier["accepted"], earlier["rejected"])
        self._see(RunBegan(*counts, self._order.rates))
        clock = self._clock()
        try:
            await self._crew.walk(self._sitting)
        finally:
            clock.cancel()
        self._sitting.say("writing the corpus")
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

    def _see(self, event: Event) -> None:
        self._tally.see(event)
        if passed := self._order.budget.passed(self._tally):
            self._halt.stop(why=passed)
        self._watch(event)

    def _on_disk(self) -> Counter[Outcome]:
        """How many walks of the plan ended how."""
        sitting = self._sitting
        ended = ended_walks(sitting.folder, sitting.manifest.fingerprint)
        if not len(ended):
            return Counter()
        return Counter(end.outcome for end in sitting.ends(ended.get, sitting.plan))

    def _finish(self, seconds: float) -> Report:
        sitting, order = self._sitting, self._order
        ended = ended_walks(sitting.folder, sitting.manifest.fingerprint)
        ends = kept_in_order(sitting.ends(ended.get, sitting.plan.by_seed(order.walks)))
        on_disk = Counter(end.outcome for end in ends())
        reached = sitting.aim.reached
        if self._crew.parted:
            # What others saw and died before telling is on disk all the same.
            self._tally.recount(on_disk)
        pending = conserve(self._tally, on_disk, self._halt.asked or reached)
        walks = sitting.aim.length or order.walks

        if walks < order.walks:
            ends = kept_in_order(sitting.ends(ended.get, sitting.plan.by_seed(walks)))
        make_corpus(sitting.folder, ends)
        report = make_report(
            sitting.folder,
            sitting.manifest,
            ends,
            self._tally,
            prices=order.prices,
            walks=walks,
            pending=0 if reached else pending,
            stopped="" if reached else self._halt.why,
            seconds=seconds,
            judge_card=order.judge_card,
            skipped_seeds=order.skipped_seeds,
            skipped_count=order.skipped_count,
        )
        write_report(report, sitting.folder)
        return report
