"""The states that a graph's walks pass through, and the steps between them.

A state is a point at which the same ways lead on; what was known on the walks that meet there may
differ. States form a DAG, for each step happens at most once a walk. How they are found is the
business of `states.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import NewType

from dataforge.plan.action import Action
from dataforge.plan.shape import Conditions, Known, Shape

__all__ = ["START", "Arc", "Space", "State", "entry", "first_known", "line"]

State = NewType("State", int)
"""A point of a walk; opaque."""
Arc = tuple[Action, State]
"""A step that can be taken, and the state it leads to."""

START = State(0)


@dataclass(frozen=True)
class Space:
    """States and the arcs between them; the only arc from `START` is the source."""

    arcs: Mapping[State, tuple[Arc, ...]]
    """State -> the steps open there, by name; none at an end."""
    end: State | None
    """Where the target has run; None where it never does."""

    def live(self) -> Space:
        """The part from which an end can still be reached."""
        before: dict[State, set[State]] = defaultdict(set)
        for state, steps in self.arcs.items():
            for _, reached in steps:
                before[reached].add(state)
        alive = set() if self.end is None else {self.end}
        waiting = list(alive)
        while waiting:
            for state in before[waiting.pop()]:
                if state not in alive:
                    alive.add(state)
                    waiting.append(state)
        arcs = {
            state: tuple(arc for arc in steps if arc[1] in alive)
            for state, steps in self.arcs.items()
            if state in alive
        }
        return Space(arcs, self.end)

    def last_first(self) -> tuple[State, ...]:
        """All states, each after all that can follow it."""
        return self._last_first

    @cached_property
    def _last_first(self) -> tuple[State, ...]:
        follow = {state: {reached for _, reached in arcs} for state, arcs in self.arcs.items()}
        return tuple(TopologicalSorter(follow).static_order())

    def taken(self) -> dict[str, Action]:
        """The actions on some arc, by name."""
        found = {action.name: action for arcs in self.arcs.values() for action, _ in arcs}
        return dict(sorted(found.items()))

    def after(self, states: Iterable[State]) -> list[State]:
        """`states`, and all that can be reached from them."""
        seen: dict[State, None] = dict.fromkeys(states)
        waiting = list(seen)
        while waiting:
            for _, reached in self.arcs[waiting.pop()]:
                if reached not in seen:
                    seen[reached] = None
                    waiting.append(reached)
        return list(seen)


def entry(conditions: Conditions) -> dict[str, Shape]:
    """What is known of a fresh record that meets `conditions` and holds nothing else."""
    return {name: shape for name, shape in conditions.items() if shape is not None}


def first_known(space: Space, conditions: Conditions) -> dict[State, Known]:
    """What is known at each state on one of the shortest walks to it."""
    known: dict[State, Known] = {START: entry(conditions)}
    queue = [START]
    for state in queue:
        for action, reached in space.arcs[state]:
            if reached not in known:
                known[reached] = action.after(known[state])
                queue.append(reached)
    return known


def line(steps: Sequence[Action]) -> Space:
    """The space of a single walk: the steps in order."""
    arcs: dict[State, tuple[Arc, ...]] = {
        State(number): ((step, State(number + 1)),) for number, step in enumerate(steps)
    }
    end = State(len(steps))
    return Space({**arcs, end: ()}, end)
