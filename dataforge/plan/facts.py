"""What is known at each state of a graph, over all walks that lead there.

Walks that meet in a state may know different things of a field that no later step looks at. Since
a step keeps a field or replaces what is known of it, whatever else is known, the facts a field can
bear at a state are worked out field by field, forwards over the states, with no loss. Combinations
across fields are not kept.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

from dataforge.plan.needs import bits
from dataforge.plan.shape import Conditions, Known, Shape
from dataforge.plan.space import START, Space, State, entry

__all__ = ["Facts"]


class Facts:
    """The facts at every state of a space that is entered with `preconditions`."""

    def __init__(self, space: Space, preconditions: Conditions) -> None:
        taken = space.taken().values()
        written = {name for action in taken for name in action.postconditions}
        self._written = sorted(written)
        self._entered = entry(preconditions)
        self._facts: list[tuple[str, Shape | None]] = []
        self._numbers: dict[tuple[str, Shape | None], int] = {}
        fields = {*preconditions, *written}
        start = self._bits({name: self._entered.get(name) for name in sorted(fields)})
        given = {action.name: self._bits(action.postconditions) for action in taken}
        of_field: dict[str, int] = defaultdict(int)
        for number, (name, _) in enumerate(self._facts):
            of_field[name] |= 1 << number
        replaced = {
            action.name: sum(of_field[name] for name in action.postconditions) for action in taken
        }
        self._held: dict[State, int] = {START: start}
        for state in reversed(space.last_first()):
            held = self._held[state]
            for action, reached in space.arcs[state]:
                after = held & ~replaced[action.name] | given[action.name]
                self._held[reached] = self._held.get(reached, 0) | after

    def of(self, state: State) -> dict[str, list[Shape | None]]:
        """Field -> all that it may be known to be at a state; None: absent."""
        found: dict[str, list[Shape | None]] = defaultdict(list)
        for number in bits(self._held[state]):
            name, shape = self._facts[number]
            found[name].append(shape)
        return dict(sorted(found.items()))

    def known(self, state: State) -> Known:
        """What is known at a state on every walk; a field that only some bear may be absent."""
        known = {}
        for name, shapes in self.of(state).items():
            present = [shape for shape in shapes if shape is not None]
            if present:
                joined = reduce(Shape.join, present)
                some = len(present) < len(shapes)
                known[name] = replace(joined, maybe=True) if some else joined
        return known

    def promised(self, end: State) -> Conditions:
        """What every walk leaves behind: what is written and known at its end, and what is gone.

        A field that only some walks leave behind is no promise. One that its writer declares
        optional stays optional.
        """
        shapes_of = self.of(end)
        promised: dict[str, Shape | None] = {}
        for name in self._written:
            present = [shape for shape in shapes_of[name] if shape is not None]
            if not present and name in self._entered:
                promised[name] = None
            elif len(present) == len(shapes_of[name]):
                promised[name] = reduce(Shape.join, present)
        return MappingProxyType(promised)

    def _bits(self, facts: Conditions) -> int:
        found = 0
        for fact in facts.items():
            number = self._numbers.setdefault(fact, len(self._facts))
            if number == len(self._facts):
                self._facts.append(fact)
            found |= 1 << number
        return found
