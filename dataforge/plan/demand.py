"""Reads one piece of an annotation's metadata: which values it leaves.

Metadata that may change a value, or keep pydantic from checking it, is refused, since the plan
would then promise what no record holds. What cannot be read but only ever turns a value away (a
pattern, a predicate) is a mark. It does not read types; `annotation` does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import annotated_types as at
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    FailFast,
    PlainSerializer,
    PlainValidator,
    Strict,
    StringConstraints,
    WithJsonSchema,
    WrapSerializer,
    WrapValidator,
)
from pydantic.fields import FieldInfo

from dataforge.plan.bases import MOST, is_number, is_sized
from dataforge.plan.refused import refusal
from dataforge.plan.shape import Shape

__all__ = ["Demand", "hashable", "limit", "parts"]


@dataclass(frozen=True, slots=True)
class Demand:
    """The mark of a pydantic constraint that shapes cannot read, such as a pattern."""

    name: str
    """The argument of `pydantic.StringConstraints` it is."""
    value: Hashable
    """That argument's value."""

    def __repr__(self) -> str:
        return f"{self.name} {self.value!r}"

    def constraint(self) -> object:
        """The piece of metadata this was read from."""
        argument: dict[str, Any] = {self.name: self.value}
        return StringConstraints(**argument)


_SILENT = (str, at.DocInfo, FailFast, PlainSerializer, WrapSerializer, WithJsonSchema)
"""Metadata that says nothing of which values there are."""
_CHANGERS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)
_CHANGING = ("strip_whitespace", "to_lower", "to_upper", "coerce_numbers_to_str")
_CHECKING = ("pattern", "ascii_only")
_NO_CHANGE = "it may change the value; use annotated_types.Predicate, or check inside the node"


def parts(mark: object) -> Iterator[object]:
    """A piece of metadata taken apart into single demands."""
    if isinstance(mark, FieldInfo):
        for part in mark.metadata:
            yield from parts(part)
    elif isinstance(mark, at.GroupedMetadata):
        for part in mark:
            yield from parts(part)
    elif type(mark).__module__.startswith("pydantic._internal"):
        for name, value in vars(mark).items():
            if value is not None and value is not False:
                yield Demand(name, value)
    elif mark is not None and not isinstance(mark, _SILENT):
        yield mark


def limit(base: type, mark: object, where: str) -> Shape:
    """The values of `base` that meet a single demand, or a wider set of them; None among them.

    Raises `DeclarationError` for a demand that says nothing of this type, or cannot be kept.
    """
    if isinstance(mark, (at.Ge, at.Gt, at.Le, at.Lt)):
        if not is_number(base):
            raise refusal(mark, where, f"bounds are for int and float, not {base.__name__}")
        return _bounded(mark, where)
    if isinstance(mark, (at.MinLen, at.MaxLen)):
        if not is_sized(base):
            raise refusal(mark, where, f"{base.__name__} has no length; use Ge and Le for numbers")
        length = mark.min_length if isinstance(mark, at.MinLen) else mark.max_length
        if type(length) is not int or length < 0:
            raise refusal(mark, where, "a length is a whole number, 0 or more")
        if isinstance(mark, at.MinLen):
            return Shape(base, min_len=length, maybe=True)
        return Shape(base, max_len=length, maybe=True)
    if isinstance(mark, AllowInfNan):
        if mark.allow_inf_nan or not is_number(base):
            return Shape(maybe=True)
        return Shape(float, low_open=True, high_open=True, maybe=True)
    if isinstance(mark, Strict):
        if not mark.strict:
            raise refusal(mark, where, "a value is taken as it is, and never converted")
        return Shape(maybe=True)
    if isinstance(mark, at.MultipleOf) and not is_number(base):
        raise refusal(mark, where, f"multiples are of int and float, not {base.__name__}")
    if isinstance(mark, at.Timezone):
        raise refusal(mark, where, "it is for a datetime, which is held as text")
    _refuse_changes(base, mark, where)
    return Shape(marks=frozenset({hashable(mark, where)}), maybe=True)


def _refuse_changes(base: type, mark: object, where: str) -> None:
    if isinstance(mark, _CHANGERS):
        raise refusal(mark, where, _NO_CHANGE)
    if isinstance(mark, Demand):
        if mark.name in _CHANGING:
            raise refusal(repr(mark), where, _NO_CHANGE)
        if mark.name not in _CHECKING or not issubclass(base, str):
            raise refusal(repr(mark), where, f"it says nothing of {base.__name__}")
    elif hasattr(mark, "__get_pydantic_core_schema__"):
        raise refusal(
            mark, where, "it may change the value, or leave it unchecked; use annotated_types"
        )


def hashable(mark: object, where: str) -> Hashable:
    """A mark as it is; `DeclarationError` where two cannot be told apart by a set."""
    try:
        hash(mark)
    except TypeError:
        raise refusal(mark, where, "metadata must be hashable") from None
    return mark


def _bounded(mark: at.Ge | at.Gt | at.Le | at.Lt, where: str) -> Shape:
    match mark:
        case at.Ge(ge=bound) | at.Gt(gt=bound) | at.Le(le=bound) | at.Lt(lt=bound):
            pass
    if isinstance(bound, bool) or not isinstance(bound, (int, float)) or bound != bound:
        raise refusal(mark, where, "a bound is an int or a float")
    if isinstance(bound, int) and abs(bound) > MOST:
        raise refusal(mark, where, "a bound lies within the range of a float")
    opened = isinstance(mark, (at.Gt, at.Lt))
    if not (opened or isfinite(bound)):
        raise refusal(mark, where, "a bound is finite; Gt(-inf) and Lt(inf) shut out infinity")
    if isinstance(mark, (at.Ge, at.Gt)):
        return Shape(float, low=bound, low_open=opened, maybe=True)
    return Shape(float, high=bound, high_open=opened, maybe=True)
