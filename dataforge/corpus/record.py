"""The rows of a corpus: the samples that passed, and every model call behind them.

A row holds what training needs and the ids that lead to the rest; it repeats neither the seed
passage nor a reply's timing. Those stay in the run's journal, which `dataforge show` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Call", "Fact", "Sample", "Turn"]

Fact = str | int | float | bool
"""A short literal value known of a sample, such as its task."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str
    weight: int = 1
    """0 for an assistant's turn that is shown and not learned, such as a few-shot example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One accepted walk's conversation."""

    id: str
    """Hex; the same as the walk's."""
    seed_id: str
    walk: int
    """Which walk of its seed, from 0."""
    path: tuple[str, ...]
    """The nodes that ran, in order."""
    facts: Mapping[str, Fact]
    """What was literally known at the end: task, mode, form and the like."""
    messages: tuple[Turn, ...]
    score: float | None
    """The judge's, in [0, 1]; None when no judge scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One model call of an accepted walk, as a conversation that ends with the reply."""

    id: str
    """The sample's id, a dash and the call's number in its walk."""
    sample_id: str
    node: str
    kind: str
    """First segment of the node's name, such as `transform` or `judge`."""
    step: str
    """Which step of the walk asked: the node's name, `#` and how often it had run before."""
    attempt: int
    """Which attempt of that step, from 1."""
    superseded: bool
    """The attempt failed and a later one replaced it."""
    finish: str
    """`stop`; `length`: cut at its token limit; `refused`: withheld; `tools`: in tool calls."""
    messages: tuple[Turn, ...]
    weights: str
    """Identity of the weights that replied."""
