"""What is known of a field's value, as a set of values.

Four operations, all sound: `within` (subset), `join` (the smallest shape that holds both), `meet`
(the largest inside both) and `holds` (membership). The trade-off: a shape speaks of one field, so a
relation across fields cannot be said; what the language cannot read (a pattern, the types of a
dict's keys and values) is a mark, which entails only itself. Of a list, tuple or set it knows what
every item is: they are read and never written to, so a list of bools is a list of what bools are.
Shapes are canonical: two ways to say the same set are equal. Annotations become shapes in
`annotation.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sized
from dataclasses import dataclass, fields, replace
from enum import Enum
from math import ceil, floor, inf
from types import GenericAlias

from dataforge.errors import ContradictoryCondition
from dataforge.plan.bases import (
    MOST,
    below,
    common,
    has_items,
    is_number,
    is_sized,
    kind,
    members,
)

__all__ = [
    "Conditions",
    "Known",
    "Shape",
    "Typed",
    "entails",
    "join_known",
    "missing",
    "named",
    "say",
]


@dataclass(frozen=True, slots=True)
class Typed:
    """The mark of element types that are not read, such as those of `dict[str, int]`."""

    annotation: Hashable
    """The whole annotation, as written."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A set of values, never empty; an empty one raises `ContradictoryCondition`."""

    base: type = object
    """The type of every value; an int may stand for a float, a bool for no number."""
    values: frozenset[object] | None = None
    """The only values, all of one type; None for no such limit."""
    low: float = -inf
    """Least number. At -inf, closed means no limit at all, so NaN is in; open shuts it out."""
    high: float = inf
    """Greatest number; at inf as for `low`."""
    low_open: bool = False
    """Whether `low` itself is out."""
    high_open: bool = False
    """Whether `high` itself is out."""
    min_len: int = 0
    """Least length, in characters, bytes or items."""
    max_len: float = inf
    """Greatest length; inf for no limit."""
    marks: frozenset[Hashable] = frozenset()
    """Demands this language cannot read; each entails only itself."""
    maybe: bool = False
    """Whether the field may be absent as well."""
    items: Shape | None = None
    """What each item of a list, tuple or set is; it may be None where they may. None: no limit."""

    def __post_init__(self) -> None:
        bounded = (self.low, self.high, self.low_open, self.high_open) != (-inf, inf, False, False)
        if bounded and not is_number(self.base):
            raise ValueError(f"{self.base.__name__} has no least or greatest number")
        if (self.min_len, self.max_len) != (0, inf) and not is_sized(self.base):
            raise ValueError(f"{self.base.__name__} has no length")
        if self.items is not None and not has_items(self.base):
            raise ValueError(f"{self.base.__name__} has no items of one shape")
        if self.max_len == 0 or (self.items is not None and self.items._is_anything()):
            # Said of no item, or of any, it says nothing.
            object.__setattr__(self, "items", None)
        values = members(self.base) if self.values is None else self.values
        if values is not None:
            self._settle_on(values)
        elif below(self.base, int):
            self._round_inwards()
        touching = self.low == self.high and (self.low_open or self.high_open)
        if self.low > self.high or touching or self.min_len > self.max_len:
            raise ContradictoryCondition(f"no value is {self._rest()}")

    def _settle_on(self, values: frozenset[object]) -> None:
        """Keeps the values that the rest of the shape allows; they say the rest better."""
        if below(self.base, int):
            values = frozenset(map(_whole, values))
        kinds = {kind(value) for value in values}
        if len(kinds) > 1 or any(value != value for value in values):
            raise ValueError(f"values of several types, or NaN: {_listed(values)}")
        kept = frozenset(each for each in values if self._allows(each) and not _too_far(each))
        if not kept:
            raise ContradictoryCondition(f"no value is {self._rest()} and {_listed(values)}")
        base = kinds.pop()
        if base is float and self.base is not float and all(type(v) is int for v in kept):
            base = int
        if base is float:
            kept = frozenset(map(_double, kept))
        for name, value in {**_FREE, "base": base, "values": kept}.items():
            object.__setattr__(self, name, value)

    def _round_inwards(self) -> None:
        """Moves bounds to whole numbers; no int lies between them, and none is infinite."""
        low, high = self.low, self.high
        if abs(low) < inf:
            low = floor(low) + 1 if self.low_open else ceil(low)
        if abs(high) < inf:
            high = ceil(high) - 1 if self.high_open else floor(high)
        rounded = {"low": low, "low_open": abs(low) == inf}
        rounded |= {"high": high, "high_open": abs(high) == inf}
        for name, value in rounded.items():
            object.__setattr__(self, name, value)

    def _is_anything(self) -> bool:
        """Whether every value is in the set, None aside."""
        return self.base is object and self.values is None and not self.marks

    def holds(self, value: object) -> bool:
        """Whether `value` is in the set; marks are not run. None stands for absent."""
        if value is None:
            return self.maybe
        if self.values is not None:
            alike = below(type(value), self.base) and kind(value) is kind(next(iter(self.values)))
            return alike and value in self.values
        return self._allows(value)

    def _allows(self, value: object) -> bool:
        """Whether type, bounds and lengths let `value` be."""
        if not below(type(value), self.base):
            return False
        if is_number(self.base) and _too_far(value):
            return False
        if self.low > -inf or self.low_open:
            assert isinstance(value, (int, float))
            if not (value > self.low or (value == self.low and not self.low_open)):
                return False
        if self.high < inf or self.high_open:
            assert isinstance(value, (int, float))
            if not (value < self.high or (value == self.high and not self.high_open)):
                return False
        if self.min_len > 0 or self.max_len < inf:
            assert isinstance(value, Sized)
            if not self.min_len <= len(value) <= self.max_len:
                return False
        if self.items is not None:
            assert isinstance(value, Iterable)
            return all(map(self.items.holds, value))
        return True

    def within(self, wide: Shape) -> bool:
        """Whether every value of this shape is a value of `wide`."""
        if self.maybe and not wide.maybe:
            return False
        if not (below(self.base, wide.base) and self.marks >= wide.marks):
            return False
        if self.values is not None:
            return all(wide.holds(value) for value in self.values)
        if wide.values is not None:
            return False
        (bottom, top), (least, most) = self._span(), self._lengths()
        (wide_bottom, wide_top), (wide_least, wide_most) = wide._span(), wide._lengths()
        inside = bottom >= wide_bottom and top <= wide_top
        inside = inside and least >= wide_least and most <= wide_most
        return inside and (wide.items is None or self._items_within(wide.items))

    def _items_within(self, wide: Shape) -> bool:
        return self.max_len == 0 or (self.items is not None and self.items.within(wide))

    def join(self, other: Shape) -> Shape:
        """The smallest shape of this language that holds both."""
        base, maybe = common(self.base, other.base), self.maybe or other.maybe
        joined = Shape(base, marks=self.marks & other.marks, maybe=maybe)
        if self.values is not None and other.values is not None:
            kinds = {kind(value) for value in (*self.values, *other.values)}
            if len(kinds) == 1:
                return replace(joined, values=self.values | other.values)
        if is_number(base):
            low, low_open = min(self._span()[0], other._span()[0])
            high, shut = max(self._span()[1], other._span()[1])
            return replace(joined, low=low, low_open=low_open, high=high, high_open=not shut)
        if is_sized(base):
            least = min(self._lengths()[0], other._lengths()[0])
            most = max(self._lengths()[1], other._lengths()[1])
            items = self._joined_items(other) if has_items(base) else None
            return replace(joined, min_len=least, max_len=most, items=items)
        return joined

    def _joined_items(self, other: Shape) -> Shape | None:
        """What each item of either is; those of one that is always empty do not count."""
        if self.max_len == 0 or other.max_len == 0:
            return other.items if self.max_len == 0 else self.items
        if self.items is None or other.items is None:
            return None
        return self.items.join(other.items)

    def deep_marks(self) -> frozenset[tuple[int, Hashable]]:
        """The marks, and how many containers deep each stands."""
        inner = self.items.deep_marks() if self.items is not None else frozenset()
        return frozenset((0, mark) for mark in self.marks) | {(deep + 1, m) for deep, m in inner}

    def meet(self, other: Shape) -> Shape | None:
        """The largest shape inside both; None where there is none.

        Two optional shapes with nothing but absence in common have none either, nor two containers
        whose items have nothing but None in common: no shape says it.
        """
        if below(self.base, other.base):
            base = self.base
        elif below(other.base, self.base):
            base = other.base
        else:
            return None
        values = self.values if self.values is not None else other.values
        if self.values is not None and other.values is not None:
            values = frozenset(value for value in self.values if other.holds(value))
            values |= frozenset(value for value in other.values if self.holds(value))
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, shut = min((self.high, not self.high_open), (other.high, not other.high_open))
        least, most = max(self.min_len, other.min_len), min(self.max_len, other.max_len)
        items = self.items or other.items
        if self.items is not None and other.items is not None:
            items = self.items.meet(other.items)
            if items is None and self.items.maybe and other.items.maybe:
                return None
            # With no item in common, only the empty one is inside both.
            most = most if items is not None else 0
        marks, maybe = self.marks | other.marks, self.maybe and other.maybe
        try:
            return Shape(
                base, values, low, high, low_open, not shut, least, most, marks, maybe, items
            )
        except ContradictoryCondition:
            return None

    def _span(self) -> tuple[tuple[float, bool], tuple[float, bool]]:
        """Bottom and top, ordered: (low, whether it is out), (high, whether it is in)."""
        numbers = [value for value in self.values or () if isinstance(value, (int, float))]
        if numbers:
            return (min(numbers), False), (max(numbers), True)
        return (self.low, self.low_open), (self.high, not self.high_open)

    def _lengths(self) -> tuple[int, float]:
        lengths = [len(value) for value in self.values or () if isinstance(value, (str, bytes))]
        return (min(lengths), max(lengths)) if lengths else (self.min_len, self.max_len)

    def say(self) -> str:
        """The shape in English, such as `str of at least 200 characters`."""
        return f"{self._present()}, or absent" if self.maybe else self._present()

    def _present(self) -> str:
        if self.values is not None and self.values != members(self.base):
            return _listed(self.values)
        return self._rest()

    def _brief(self) -> str:
        """The type as an annotation, such as `list[str]`; empty where items need more words."""
        if self.items is None:
            return ""
        of = self.items
        bare = Shape(of.base, items=of.items, marks=of.marks, maybe=of.maybe)
        if self.items != bare or any(not isinstance(mark, Typed) for mark in bare.marks):
            return ""
        inner = f"{bare._rest()} | None" if bare.maybe else bare._rest()
        if bare.items is not None and not bare._brief():
            return ""
        return f"{named(self.base)}[{inner}{', ...' if self.base is tuple else ''}]"

    def _rest(self) -> str:
        """All but the values, in English."""
        brief = self._brief()
        typed = sorted(named(mark.annotation) for mark in self.marks if isinstance(mark, Typed))
        said = brief or " and ".join(typed) or named(self.base)
        unit = "character" if self.base is str else "byte" if self.base is bytes else "item"
        if self.min_len > 0 or self.max_len < inf:
            said += f" of {_counted(self.min_len, self.max_len, unit)}"
        if self.items is not None and not brief:
            said += "" if self.min_len > 0 or self.max_len < inf else " of items"
            said += f", each {self.items._present()}{' or None' if self.items.maybe else ''}"
        bounds = []
        if self.low > -inf:
            bounds.append(f" {'>' if self.low_open else '>='} {self.low}")
        if self.high < inf:
            bounds.append(f" {'<' if self.high_open else '<='} {self.high}")
        if self.base is float and self.low_open and self.high_open and not bounds:
            said = f"finite {said}"
        others = sorted(named(mark) for mark in self.marks if not isinstance(mark, Typed))
        return said + " and".join(bounds) + "".join(f" marked {mark}" for mark in others)


_FREE: Mapping[str, object] = {
    field.name: field.default for field in fields(Shape) if field.name not in ("marks", "maybe")
}
"""What each limit of a shape is where it limits nothing."""

Conditions = Mapping[str, Shape | None]
"""Field -> its shape; None: the field must be absent, or is dropped."""
Known = Mapping[str, Shape]
"""Field -> what is known of it; a field not in it is known to be absent."""


def entails(have: Shape | None, want: Shape | None) -> bool:
    """Whether what is known of one field (None: absent) meets a condition on it."""
    if want is None:
        return have is None
    return want.maybe if have is None else have.within(want)


def missing(known: Known, conditions: Conditions) -> dict[str, tuple[Shape | None, Shape | None]]:
    """The conditions that `known` does not entail: field -> (wanted, known)."""
    return {
        name: (want, known.get(name))
        for name, want in conditions.items()
        if not entails(known.get(name), want)
    }


def join_known(one: Known, other: Known) -> dict[str, Shape]:
    """What is known when either is; a field of one only may be absent."""
    joined = {}
    for name in sorted(one.keys() | other.keys()):
        if name in one and name in other:
            joined[name] = one[name].join(other[name])
        else:
            joined[name] = replace(one[name] if name in one else other[name], maybe=True)
    return joined


def say(shape: Shape | None) -> str:
    """A condition in English; None is `absent`."""
    return "absent" if shape is None else shape.say()


def _whole(value: object) -> object:
    """A float as the int it equals, where there is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _double(value: object) -> object:
    """An int as the float it equals, where there is one; -0.0 as the 0.0 it equals."""
    if isinstance(value, int):
        return float(value) if abs(value) <= 2**53 else value
    return value + 0.0 if isinstance(value, float) else value


def _too_far(value: object) -> bool:
    """Whether it is an int beyond every float, which nothing takes."""
    return isinstance(value, int) and abs(value) > MOST


def _listed(values: Collection[object]) -> str:
    numbers = [value for value in values if type(value) in (int, float)]
    said = [str(number) for number in sorted(numbers)]  # type: ignore[type-var]
    said += sorted(
        f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)
        for value in values
        if type(value) not in (int, float)
    )
    return said[0] if len(said) == 1 else f"one of {', '.join(said)}"


def named(thing: object) -> str:
    """A type or a mark as its author wrote it, without module names."""
    if thing is object:
        return "anything"
    if isinstance(thing, type) and not isinstance(thing, GenericAlias):
        return thing.__name__
    return re.sub(r"\b[^\W\d]\w*\.| at 0x[0-9a-f]+|\b\w+=None, |, \w+=None\b", "", repr(thing))


def _counted(least: int, most: float, unit: str) -> str:
    units = unit if (most if most < inf else least) == 1 else f"{unit}s"
    if least == most:
        return f"exactly {least} {units}"
    if most == inf:
        return f"at least {least} {units}"
    return f"{least} to {most} {units}" if least else f"at most {most} {units}"
