"""What actions need and give, in bits: the plan's index of who needs which field how.

A bit stands for one condition that some action puts on one field. Actions can tell two points of a
walk apart only by which of these conditions are met there, so all that is known at a point is one
number, taking a step is two operations on it, and two shapes are compared once, however many
actions name them. Nothing here knows of walks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from dataforge.plan.action import Action
from dataforge.plan.shape import Known, Shape, entails

__all__ = ["Needs", "bits"]

Condition = tuple[str, Shape | None]
"""A field, and what it is or must be; None: absent."""


class Needs:
    """The conditions of some actions, numbered; an action's number is its place among them."""

    def __init__(
        self,
        actions: Sequence[Action],
        before: Needs | None = None,
        told_apart: Collection[str] = (),
    ) -> None:
        """`before`: those of the first of the actions, whose comparisons are used again.

        `told_apart`: fields of which each promise is a condition too, though nobody's need.
        """
        self.actions = tuple(actions)
        self.bit: dict[Condition, int] = {}
        """Condition -> its bit. Those of the first actions come first."""
        self._met: dict[tuple[Shape | None, Shape | None], bool]
        self._met = {} if before is None else before._met
        self._of_field: dict[str, list[tuple[int, Shape | None]]] = defaultdict(list)
        self._meets: dict[Condition, int] = {}
        self._apart: dict[Condition, int] = {}
        for action in self.actions:
            for field, want in action.requires.items():
                if (field, want) not in self.bit:
                    self._of_field[field].append((len(self.bit), want))
                    self.bit[field, want] = len(self.bit)
        for action in self.actions if told_apart else ():
            for field, shape in action.postconditions.items():
                if field in told_apart and shape is not None:
                    self._apart.setdefault((field, shape), len(self.bit) + len(self._apart))
        self.fields: Mapping[str, int] = {
            field: sum(1 << number for number, _ in wants)
            + sum(1 << number for (name, _), number in self._apart.items() if name == field)
            for field, wants in self._of_field.items()
        }
        """Field -> the bits of all conditions on it."""
        self.need = [
            sum(1 << self.bit[each] for each in action.requires.items()) for action in self.actions
        ]
        """Action -> the bits it needs."""
        self.effect = [self._effect(action) for action in self.actions]
        """Action -> the bits that outlive it, and those it sets."""
        self.users = self._indexed(self.need)
        """Bit -> the actions that need it, as a set of bits."""
        self.givers = self._indexed([given for _, given in self.effect])
        """Bit -> the actions that set it, as a set of bits."""

    @property
    def all(self) -> int:
        """Every bit."""
        return (1 << len(self.bit) + len(self._apart)) - 1

    def met(self, known: Known) -> int:
        """The bits of the conditions that `known` entails."""
        return sum(self.meets(field, known.get(field)) for field in self.fields)

    def meets(self, field: str, have: Shape | None) -> int:
        """The bits of the conditions on `field` that `have` entails."""
        found = self._meets.get((field, have))
        if found is None:
            found = 0
            for number, want in self._of_field.get(field, ()):
                if (have, want) not in self._met:
                    self._met[have, want] = entails(have, want)
                if self._met[have, want]:
                    found |= 1 << number
            if (field, have) in self._apart:
                found |= 1 << self._apart[field, have]
            self._meets[field, have] = found
        return found

    def _effect(self, action: Action) -> tuple[int, int]:
        kept, given = self.all, 0
        for field, shape in action.postconditions.items():
            kept &= ~self.fields.get(field, 0)
            given |= self.meets(field, shape)
        return kept, given

    def _indexed(self, masks: Sequence[int]) -> list[int]:
        index = [0] * self.all.bit_length()
        for number, mask in enumerate(masks):
            for place in bits(mask):
                index[place] |= 1 << number
        return index


def bits(mask: int) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
