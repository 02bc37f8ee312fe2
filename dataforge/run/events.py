"""What a run tells whoever watches it: facts as they happen, for a progress line and nothing else.

No part of the run depends on a watcher, and a watcher sees nothing that is not on disk as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dataforge.errors import CallOutcome
from dataforge.models.base import Reply
from dataforge.run.prices import Price
from dataforge.run.trace import WalkEnd

__all__ = ["CallEnded", "CallFailed", "Event", "RunBegan", "Said", "WalkEnded", "Watch"]


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The run directory is open and the walks are about to begin."""

    walks: int
    """How many are asked for in all."""
    accepted: int
    """How many of them an earlier run of the command ended this way."""
    rejected: int
    rates: Mapping[str, Price | None]
    """Role -> price of its model; None where it is not known."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A model replied, now or on an earlier run of the command."""

    walk_id: str
    role: str
    node: str
    reply: Reply
    seconds: float
    reused: bool
    """The journal had it; `seconds` is then 0."""


@dataclass(frozen=True, slots=True)
class CallFailed:
    """An endpoint gave no reply; the call may be tried again."""

    outcome: CallOutcome


@dataclass(frozen=True, slots=True)
class WalkEnded:
    """A walk ended and is on disk."""

    end: WalkEnd


@dataclass(frozen=True, slots=True)
class Said:
    """Something the user should read."""

    text: str


Event = RunBegan | CallEnded | CallFailed | WalkEnded | Said
Watch = Callable[[Event], None]
