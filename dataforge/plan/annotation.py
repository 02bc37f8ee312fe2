"""Reads annotations into shapes, and writes shapes back as annotations.

The annotation is the only language there is for conditions, so all of it is read or refused: what
would be widened silently (a union of types, a validator that may change the value) is a
`DeclarationError` that names the field and the nearest form that is supported. It does not look
inside a dict, a tuple of several types or a list whose items may be None: their element types are
a mark, checked by pydantic at run time.
"""

from __future__ import annotations

import types
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum, Flag
from math import inf, isfinite, isnan
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin

import annotated_types as at
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    PlainValidator,
    Strict,
    StringConstraints,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.bases import has_items, is_number, is_sized, kind
from dataforge.plan.refused import of_union, unsupported
from dataforge.plan.shape import Shape, Typed, named

__all__ = ["Absent", "read_shape", "write_shape"]


@dataclass(frozen=True, slots=True)
class Gone:
    """What tells `Absent` from a plain None."""


Absent = Annotated[None, Gone()]
"""As an annotation: the field must be absent (precondition) or is dropped (postcondition)."""


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


_CONTAINERS = (list, dict, tuple, set, frozenset)
_PLAIN = (object, str, int, float, bool, bytes, *_CONTAINERS)
_CHANGERS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)
_SUPPORTED = (
    "supported are str, int, float, bool, bytes, Literal choices of one type, an Enum, a pydantic "
    "model, a dataclass, list[T], dict[K, V], tuple, set, any of these `| None`, and Absent"
)


def read_shape(annotation: object, where: str) -> Shape | None:
    """The shape an annotation means, None for `Absent`; `where` names the field in errors.

    Raises `DeclarationError` for what cannot be read, `ContradictoryCondition` for an empty shape.
    """
    annotation, marks = _peeled(annotation)
    if annotation is None or annotation is type(None):
        if any(isinstance(mark, Gone) for mark in marks):
            return None
        raise DeclarationError(f"{where}: None says nothing; write Absent")
    try:
        shape = _base_shape(annotation, where)
        for mark in marks:
            for part in _parts(mark):
                shape = _narrowed(shape, part, where)
    except ContradictoryCondition as error:
        raise ContradictoryCondition(f"{where} can never be met: {error}") from None
    return shape


def _peeled(annotation: object) -> tuple[object, list[object]]:
    """The type under any layers of `Annotated`, and their metadata."""
    marks: list[object] = []
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            marks += more
        elif isinstance(annotation, TypeAliasType):
            annotation = annotation.__value__
        else:
            return annotation, marks


def _base_shape(annotation: object, where: str) -> Shape:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Union or origin is types.UnionType:
        return _optional(args, where)
    if origin is Literal:
        return _choices(args, where)
    if isinstance(origin, type) and issubclass(origin, _CONTAINERS):
        return _container(origin, args, where)
    if isinstance(annotation, type) and origin is None:
        if issubclass(annotation, Flag):
            raise _refusal(annotation, where, "flags combine; use an Enum or Literal choices")
        if issubclass(annotation, Enum) and not len(annotation):
            raise _refusal(annotation, where, "it has no members, so no value is one")
        if annotation in _PLAIN or issubclass(annotation, (Enum, BaseModel)):
            return Shape(annotation)
        if is_dataclass(annotation):
            return Shape(annotation)
    raise _refusal(annotation, where, unsupported(annotation) or _SUPPORTED)


def _optional(args: tuple[object, ...], where: str) -> Shape:
    kinds = [arg for arg in args if arg is not type(None)]
    if len(kinds) > 1:
        raise _refusal(" | ".join(map(named, args)), where, of_union(kinds))
    inner = read_shape(kinds[0], where)
    if inner is None:
        raise DeclarationError(f"{where}: Absent cannot be optional; `T | None` may be absent")
    return replace(inner, maybe=True)


def _choices(args: tuple[object, ...], where: str) -> Shape:
    values = [arg for arg in args if arg is not None]
    kinds = {kind(value) for value in values}
    if len(kinds) != 1:
        raise _refusal(Literal[args], where, "choices of one type; make two nodes for two types")
    return Shape(values=frozenset(values), maybe=None in args)


def _container(origin: type, args: tuple[object, ...], where: str) -> Shape:
    if all(arg is Any or arg is object or arg is ... for arg in args):
        return Shape(origin)
    if has_items(origin) and (args[1:] == (...,) if origin is tuple else True):
        items = read_shape(args[0], f"{where}, its items")
        if items is None:
            raise DeclarationError(f"{where}: items cannot be Absent; write `T | None`")
        if not items.maybe:
            return Shape(origin, items=items)
    plain = origin[args]  # type: ignore[index]
    return Shape(origin, marks=frozenset({_hashable(Typed(plain), where)}))


def _parts(mark: object) -> Iterator[object]:
    """A piece of metadata taken apart into single demands."""
    if isinstance(mark, FieldInfo):
        for part in mark.metadata:
            yield from _parts(part)
    elif isinstance(mark, at.GroupedMetadata):
        for part in mark:
            yield from _parts(part)
    elif type(mark).__module__.startswith("pydantic._internal"):
        for name, value in vars(mark).items():
            if value is not None and value is not False:
                yield Demand(name, value)
    elif not isinstance(mark, (Strict, str, at.DocInfo)):
        yield mark


def _narrowed(shape: Shape, mark: object, where: str) -> Shape:
    """The values of `shape` that meet one more demand."""
    limit = _limit(shape.base, mark, where)
    both = shape.meet(limit)
    if both is None:
        asked = replace(limit, maybe=False).say()
        raise ContradictoryCondition(f"no value is {shape.say()} and {asked}")
    return both


def _limit(base: type, mark: object, where: str) -> Shape:
    if isinstance(mark, (at.Ge, at.Gt, at.Le, at.Lt)):
        if not is_number(base):
            raise _refusal(mark, where, f"bounds are for int and float, not {base.__name__}")
        return _bounded(mark, where)
    if isinstance(mark, (at.MinLen, at.MaxLen)):
        if not is_sized(base):
            raise _refusal(mark, where, f"{base.__name__} has no length; use Ge and Le for numbers")
        if isinstance(mark, at.MinLen):
            return Shape(base, min_len=mark.min_length, maybe=True)
        return Shape(base, max_len=mark.max_length, maybe=True)
    if isinstance(mark, AllowInfNan):
        if mark.allow_inf_nan or not is_number(base):
            return Shape(maybe=True)
        return Shape(float, low_open=True, high_open=True, maybe=True)
    if isinstance(mark, _CHANGERS):
        advice = "it may change the value; use annotated_types.Predicate, or check inside the node"
        raise _refusal(mark, where, advice)
    if isinstance(mark, Gone):
        raise DeclarationError(f"{where}: write Absent alone, without another type")
    return Shape(marks=frozenset({_hashable(mark, where)}), maybe=True)


def _hashable(mark: object, where: str) -> Hashable:
    try:
        hash(mark)
    except TypeError:
        raise _refusal(mark, where, "metadata must be hashable") from None
    return mark


def _bounded(mark: at.Ge | at.Gt | at.Le | at.Lt, where: str) -> Shape:
    match mark:
        case at.Ge(ge=bound) | at.Gt(gt=bound) | at.Le(le=bound) | at.Lt(lt=bound):
            pass
    if isinstance(bound, bool) or not isinstance(bound, (int, float)) or isnan(bound):
        raise _refusal(mark, where, "a bound is an int or a float")
    opened = isinstance(mark, (at.Gt, at.Lt))
    if not (opened or isfinite(bound)):
        raise _refusal(mark, where, "a bound is finite; Gt(-inf) and Lt(inf) shut out infinity")
    if isinstance(mark, (at.Ge, at.Gt)):
        return Shape(float, low=bound, low_open=opened, maybe=True)
    return Shape(float, high=bound, high_open=opened, maybe=True)


def _refusal(asked: object, where: str, advice: str) -> DeclarationError:
    said = asked if isinstance(asked, str) else named(asked)
    return DeclarationError(f"{where}: cannot read {said}: {advice}")


def write_shape(shape: Shape | None) -> object:
    """An annotation that reads back as `shape`, for structs made from data."""
    if shape is None:
        return Absent
    typed = [mark.annotation for mark in shape.marks if isinstance(mark, Typed)]
    written: object = typed[0] if typed else shape.base
    if shape.items is not None:
        of: Any = (write_shape(shape.items),)
        container: Any = shape.base
        written = container[(*of, ...) if shape.base is tuple else of]
    marks: list[object] = [mark for mark in shape.marks if not isinstance(mark, Typed)]
    if shape.values is not None:
        written = Literal[tuple(shape.values)]
    infinite = shape.base is float
    if shape.low > -inf or (shape.low_open and infinite):
        marks.append(at.Gt(shape.low) if shape.low_open else at.Ge(shape.low))
    if shape.high < inf or (shape.high_open and infinite):
        marks.append(at.Lt(shape.high) if shape.high_open else at.Le(shape.high))
    if shape.min_len > 0:
        marks.append(at.MinLen(shape.min_len))
    if shape.max_len < inf:
        marks.append(at.MaxLen(int(shape.max_len)))
    for mark in marks:
        if isinstance(mark, Demand):
            mark = mark.constraint()
        written = Annotated[written, mark]
    return Optional[written] if shape.maybe else written  # noqa: UP045
