"""The states a graph's walks can be in, and the steps between them.

A state is what is known there, plus which steps that could otherwise repeat have been taken. Edges
live on states because an action's needs are often met by several earlier actions together, which no
single predecessor guarantees; the picture of nodes and edges is a projection.

The states form a DAG, for each step happens at most once a walk. A step that newly writes a field
which no action drops leaves that field behind, and so is shut out by what is known; every other
step is remembered. Only the latter make states differ, so equal knowledge merges. What this does
not do: merge states that differ only in facts no later step can see, so the number of states grows
with the number of distinct facts, up to `max_states`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import NewType

from dataforge.errors import TooManyStates
from dataforge.plan.action import Action
from dataforge.plan.shape import Conditions, Known, Shape, entails

__all__ = ["Arc", "Space", "State", "explore", "line"]

State = NewType("State", int)
"""A point of a walk; opaque."""
Arc = tuple[Action, State]
"""A step that can be taken, and the state it leads to."""

START = State(0)


@dataclass(frozen=True, slots=True)
class Space:
    """States and the arcs between them; the only arc from `START` is the source."""

    arcs: Mapping[State, tuple[Arc, ...]]
    """State -> the steps open there, by name; none at an end."""
    known: Mapping[State, Known]
    """State -> what is known there."""
    ends: frozenset[State]
    """The states in which the target has run."""

    def live(self) -> Space:
        """The part from which an end can still be reached."""
        before: dict[State, list[State]] = defaultdict(list)
        for state, steps in self.arcs.items():
            for _, reached in steps:
                before[reached].append(state)
        alive, waiting = set(self.ends), list(self.ends)
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
        return Space(arcs, {state: self.known[state] for state in arcs}, self.ends)

    def last_first(self) -> Iterator[State]:
        """All states, each after all that can follow it."""
        follow = {state: [reached for _, reached in arcs] for state, arcs in self.arcs.items()}
        return iter(TopologicalSorter(follow).static_order())

    def taken(self) -> dict[str, Action]:
        """The actions on some arc, by name."""
        found = {action.name: action for arcs in self.arcs.values() for action, _ in arcs}
        return dict(sorted(found.items()))


def entry(conditions: Conditions) -> dict[str, Shape]:
    """What is known of a fresh record that meets `conditions` and holds nothing else."""
    return {name: shape for name, shape in conditions.items() if shape is not None}


def line(steps: Sequence[Action], conditions: Conditions) -> Space:
    """The space of a single walk: the steps in order, from a record that meets `conditions`."""
    known: dict[State, Known] = {START: entry(conditions)}
    arcs: dict[State, tuple[Arc, ...]] = {}
    for number, step in enumerate(steps):
        here, there = State(number), State(number + 1)
        arcs[here] = ((step, there),)
        known[there] = step.after(known[here])
    end = State(len(steps))
    return Space({**arcs, end: ()}, known, frozenset({end}))


def explore(
    name: str, actions: Sequence[Action], source: Action, target: Action, max_states: int
) -> Space:
    """All states that walks from `source` can be in, dead ends included; they end at `target`.

    Raises `TooManyStates`.
    """
    return _Explorer(name, actions, source, target, max_states).run()


Facts = tuple[int, ...]
"""What is known, one number a field: 0 for absent, else an index into the shapes seen."""


class _Explorer:
    """Explores with small numbers in place of shapes, each comparison of two shapes made once."""

    def __init__(
        self,
        name: str,
        actions: Sequence[Action],
        source: Action,
        target: Action,
        max_states: int,
    ) -> None:
        self.name, self.source, self.target, self.max_states = name, source, target, max_states
        every = [source, *actions]
        named = {field for action in every for field in (*action.requires, *action.postconditions)}
        self.fields = sorted(named)
        self.place = {field: number for number, field in enumerate(self.fields)}
        self.shapes: list[Shape | None] = [None]
        self.numbers: dict[Shape | None, int] = {None: 0}
        self.met: dict[tuple[int, int], bool] = {}
        self.needs = {action.name: self._numbered(action.requires) for action in every}
        self.gives = {action.name: self._numbered(action.postconditions) for action in every}
        others = sorted((a for a in actions if a is not source), key=lambda action: action.name)
        self.bits = _remembered(others, every)
        self.others = others
        self.seen: dict[tuple[Facts, int], State] = {}
        self.queue: deque[tuple[State, Facts, int]] = deque()
        self.arcs: dict[State, tuple[Arc, ...]] = {}
        self.known: dict[State, Known] = {}

    def run(self) -> Space:
        known = entry(self.source.preconditions)
        facts = tuple(self._number(known.get(field)) for field in self.fields)
        self.arcs[START], self.known[START] = (), known
        first = self._reach(self._after(self.source, facts), 0)
        self.arcs[START] = ((self.source, first),)
        ends: set[State] = set()
        if self.source is self.target:
            self.arcs[first] = ()
            return Space(self.arcs, self.known, frozenset({first}))
        while self.queue:
            state, facts, taken = self.queue.popleft()
            if taken & _ENDED:
                ends.add(state)
                self.arcs[state] = ()
                continue
            self.arcs[state] = tuple(
                (action, self._reach(self._after(action, facts), taken | self._bit(action)))
                for action in self.others
                if not taken & self.bits[action.name] and self._open(action, facts)
            )
        return Space(self.arcs, self.known, frozenset(ends))

    def _bit(self, action: Action) -> int:
        return _ENDED if action is self.target else self.bits[action.name]

    def _reach(self, facts: Facts, taken: int) -> State:
        state = self.seen.get((facts, taken))
        if state is None:
            state = State(len(self.seen) + 1)
            if state > self.max_states:
                raise TooManyStates(self._explosion())
            self.seen[facts, taken] = state
            self.queue.append((state, facts, taken))
            pairs = zip(self.fields, (self.shapes[number] for number in facts), strict=True)
            self.known[state] = {field: shape for field, shape in pairs if shape is not None}
        return state

    def _open(self, action: Action, facts: Facts) -> bool:
        for field, want in self.needs[action.name]:
            have = facts[field]
            met = self.met.get((have, want))
            if met is None:
                met = self.met[have, want] = entails(self.shapes[have], self.shapes[want])
            if not met:
                return False
        return True

    def _after(self, action: Action, facts: Facts) -> Facts:
        changed = list(facts)
        for field, given in self.gives[action.name]:
            changed[field] = given
        return tuple(changed)

    def _numbered(self, conditions: Conditions) -> list[tuple[int, int]]:
        return [(self.place[name], self._number(shape)) for name, shape in conditions.items()]

    def _number(self, shape: Shape | None) -> int:
        number = self.numbers.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
        return number

    def _explosion(self) -> str:
        """Which fields multiply the states, and what to do."""
        variety = {
            field: len({facts[number] for facts, _ in self.seen})
            for number, field in enumerate(self.fields)
        }
        worst = sorted(variety, key=lambda field: (-variety[field], field))[:3]
        counts = ", ".join(f"{field} ({variety[field]} different)" for field in worst)
        repeats = sorted(name for name, bit in self.bits.items() if bit)
        also = (
            f", and each of these may or may not have run: {', '.join(repeats)}" if repeats else ""
        )
        return (
            f"graph {self.name!r} has more than {self.max_states} states; the fields that multiply "
            f"them are {counts}{also}. Put the nodes that write and read them in a graph of their "
            "own, and name that graph here as one node"
        )


_ENDED = 1


def _remembered(others: Sequence[Action], every: Sequence[Action]) -> dict[str, int]:
    """A bit for each action that what is known would not keep from running twice; else 0."""
    dropped = {
        field for action in every for field, shape in action.postconditions.items() if shape is None
    }
    bits = {}
    for number, action in enumerate(others, start=1):
        stays = any(
            shape is not None and field not in action.preconditions and field not in dropped
            for field, shape in action.postconditions.items()
        )
        bits[action.name] = 0 if stays else 1 << number
    return bits
