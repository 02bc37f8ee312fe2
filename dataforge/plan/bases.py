"""The order of base types: which type's values are all values of another.

Python's own subclass order with two repairs that a planner cannot do without: a `bool` is not an
`int`, and an `int` may stand for a `float`, as it does for pydantic in strict mode. So that this
holds of every integer, one beyond the range of a double is no number here and no node can give it.
It does not look inside containers.
"""

from __future__ import annotations

import enum
import sys

__all__ = ["MOST", "below", "common", "has_items", "is_number", "is_sized", "kind", "members"]

MOST = int(sys.float_info.max)
"""The largest integer that can stand for a float."""

_NUMBERS = frozenset({int, float})
_SIZED = (str, bytes, list, dict, tuple, set, frozenset)
_OF_ITEMS = (list, tuple, set, frozenset)


def below(narrow: type, wide: type) -> bool:
    """Whether every value of `narrow` is a value of `wide`."""
    if wide is float or wide is int:
        return issubclass(narrow, (int, wide)) and narrow is not bool
    return issubclass(narrow, wide)


def common(one: type, other: type) -> type:
    """The narrowest type above both; `object` where there is no single one."""
    shared = [base for base in _above(one) if below(other, base)]
    for base in shared:
        if all(below(base, wider) for wider in shared):
            return base
    return object


def is_number(base: type) -> bool:
    """Whether bounds mean something to `base`."""
    return below(base, float)


def is_sized(base: type) -> bool:
    """Whether a length means something to `base`."""
    return issubclass(base, _SIZED)


def has_items(base: type) -> bool:
    """Whether all items of `base` can be of one shape."""
    return issubclass(base, _OF_ITEMS)


def kind(value: object) -> type:
    """The exact type two equal literals must share to be the same; 1 and 1.0 share theirs."""
    return float if type(value) in _NUMBERS else type(value)


def members(base: type) -> frozenset[object] | None:
    """All values of `base` where there are only a few; None otherwise."""
    if base is bool:
        return frozenset({False, True})
    if issubclass(base, enum.Enum) and not issubclass(base, enum.Flag):
        return frozenset(base) or None
    return None


def _above(base: type) -> list[type]:
    """The types whose values include all of `base`'s, narrowest first."""
    line = [wider for wider in base.__mro__ if below(base, wider)]
    if int in line and float not in line:
        line.insert(line.index(int) + 1, float)
    return line
