"""What is written of a walk once it has ended, enough to show it and to make its rows again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

from dataforge.corpus.record import Fact, Turn
from dataforge.errors import CallOutcome
from dataforge.verifiers.verdict import Verdict

__all__ = ["Attempt", "Outcome", "WalkEnd"]

Outcome = Literal["accepted", "rejected", "failed"]
"""`failed` is the infrastructure's doing or a bug's; the next run of the command tries again."""


@dataclass(slots=True)
class Attempt:
    """One attempt of one step of a walk; filled in while it runs."""

    node: str
    step: str
    """The node's name, `#` and how often it had run before on this walk."""
    number: int
    """Which attempt of the step, from 1."""
    calls: dict[str, int] = field(default_factory=dict)
    """Name of a call within its attempt -> where it stands in the journal.

    Names sort the same however the calls overlapped; where they stand tells which ended first.
    """
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """Name of a judging within its attempt -> verdict."""
    outcome: CallOutcome = "ok"
    """What came of it."""
    unmet: str = ""
    """Why the attempt failed; empty when it did not."""
    superseded: bool = False
    """A later attempt, or a later round of the loop, replaced it."""


class WalkEnd(BaseModel):
    """How one walk ended: one line of `walks.jsonl`."""

    model_config = ConfigDict(frozen=True)

    id: str
    fingerprint: str
    """Of the graph, models, seeds and run seed it was walked under."""
    seed_id: str
    walk: int
    """Which walk of its seed, from 0."""
    passage: str
    """The seed's text, so that a run explains itself without the file it came from."""
    outcome: Outcome
    node: str = ""
    """Where a walk that was not accepted ended."""
    reason: str = ""
    """Why, in a phrase that is the same for every walk that ends this way."""
    detail: str = ""
    """What was found this time."""
    attempts: tuple[Attempt, ...] = ()
    """Every attempt of every step, in order."""
    messages: tuple[Turn, ...] = ()
    """The sample of an accepted walk."""
    facts: dict[str, Fact] = {}
    score: float | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The nodes that count towards the end, in order."""
        return tuple(attempt.node for attempt in self.attempts if not attempt.superseded)
