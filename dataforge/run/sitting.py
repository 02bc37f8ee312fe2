"""One turn at a run: what everyone who walks for it shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dataforge.run.aim import Aim
from dataforge.run.events import Said, Watch
from dataforge.run.finish import Ended
from dataforge.run.halt import Halt
from dataforge.run.manifest import Manifest
from dataforge.run.order import Order
from dataforge.run.schedule import Plan, Planned, walk_id

__all__ = ["Crew", "Sitting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """One turn at a run."""

    order: Order
    folder: Path
    """The run directory."""
    manifest: Manifest
    plan: Plan
    aim: Aim
    watch: Watch
    halt: Halt

    def name(self, planned: Planned) -> str:
        """Id of a planned walk."""
        order = self.order
        return walk_id(order.graph.name, order.run_seed, planned.seed_id, planned.walk)

    def ends(
        self, ended: Callable[[str], Ended | None], planned: Iterable[Planned]
    ) -> Iterator[Ended]:
        """How those of the planned walks ended that did."""
        return (end for end in map(ended, map(self.name, planned)) if end is not None)

    def say(self, text: str) -> None:
        """Tells the user something."""
        self.watch(Said(text))


class Crew(Protocol):
    """Who makes the walks of a sitting: this process, or others."""

    parted: bool
    """The run directory is divided into parts that each has one owner."""

    async def walk(self, sitting: Sitting) -> None:
        """Makes all walks of the plan that are not made yet, until the aim is reached or a halt.

        Tells `sitting.aim` how each walk of the plan ended, and `sitting.watch` what happens.
        """
        ...
