"""Where walks were lost, node by node, and what came of each attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dataforge.errors import CallOutcome
from dataforge.run.finish import Ended
from dataforge.run.logs import Logs

__all__ = ["Stage", "funnel"]


class Stage(BaseModel):
    """One node, over all walks that came to it."""

    model_config = ConfigDict(frozen=True)

    node: str
    reached: int
    """Walks that came to it."""
    lost: int
    """Walks that ended there short of a sample."""
    attempts: int
    """How often it was tried, over all walks, rounds and retries."""
    outcomes: dict[CallOutcome, int]
    """What came of the attempts, most frequent first."""


class _Attempt(BaseModel):
    model_config = ConfigDict(extra="ignore")

    node: str
    outcome: CallOutcome = "ok"


class _Steps(BaseModel):
    model_config = ConfigDict(extra="ignore")

    attempts: tuple[_Attempt, ...]


@dataclass(slots=True)
class _Sum:
    reached: int = 0
    places: int = 0
    lost: int = 0
    outcomes: Counter[CallOutcome] = field(default_factory=Counter)


def funnel(folder: Path, ends: Iterable[Ended]) -> tuple[Stage, ...]:
    """The nodes that walks of a run directory came to, in the order they come to them."""
    sums: dict[str, _Sum] = {}
    with Logs(folder) as logs:
        for end in ends:
            attempts = logs.walk_as(_Steps, end.part, end.offset).attempts
            for place, node in enumerate(dict.fromkeys(attempt.node for attempt in attempts)):
                summed = sums.setdefault(node, _Sum())
                summed.reached += 1
                summed.places += place
            for attempt in attempts:
                sums[attempt.node].outcomes[attempt.outcome] += 1
            if end.outcome != "accepted":
                sums.setdefault(end.node, _Sum()).lost += 1
    return tuple(
        Stage(
            node=node,
            reached=max(summed.reached, summed.lost),
            lost=summed.lost,
            attempts=summed.outcomes.total(),
            outcomes=dict(summed.outcomes.most_common()),
        )
        for node, summed in sorted(sums.items(), key=_depth)
    )


def _depth(each: tuple[str, _Sum]) -> tuple[float, str]:
    """How far along a walk a node stands on the average."""
    node, summed = each
    return summed.places / max(1, summed.reached), node
