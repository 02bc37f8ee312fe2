"""Reads annotations into shapes, and writes shapes back as annotations.

The annotation is the only language there is for conditions, so all of it is read or refused: what
would be widened silently (a union of types, a validator that may change the value) is a
`DeclarationError` that names the field and the nearest form that is supported. It does not look
inside a model or a dataclass, whose own checks are its own affair. The element types of a dict and
of a tuple of several are refused or let through like any other, but what is let through is a mark,
which pydantic checks at run time.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum, Flag
from functools import reduce
from math import inf
from operator import or_
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from pydantic import BaseModel, JsonValue
from typing_extensions import TypeAliasType

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.bases import MOST, has_items, kind, members
from dataforge.plan.demand import Demand, hashable, limit, parts
from dataforge.plan.refused import SUPPORTED, of_union, refusal, unsupported
from dataforge.plan.shape import Shape, Typed, named

__all__ = ["Absent", "read_shape", "write_shape"]


@dataclass(frozen=True, slots=True)
class Gone:
    """What tells `Absent` from a plain None."""


Absent = Annotated[None, Gone()]
"""As an annotation: the field must be absent (precondition) or is dropped (postcondition)."""

_CONTAINERS = (list, dict, tuple, set, frozenset)
_PLAIN = (object, str, int, float, bool, bytes, *_CONTAINERS)
_LITERALS = (str, int, float, bytes, Enum)
_ALIASES = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))
"""Two classes in the versions of Python whose own one is not the extensions'."""


def read_shape(annotation: object, where: str) -> Shape | None:
    """The shape an annotation means, None for `Absent`; `where` names the field in errors.

    Raises `DeclarationError` for what cannot be read, `ContradictoryCondition` for an empty shape.
    """
    if annotation is JsonValue:
        raise refusal("JsonValue", where, "write object for any value at all")
    annotation, marks = _peeled(annotation)
    if annotation is None or annotation is type(None):
        if any(isinstance(mark, Gone) for mark in marks):
            return None
        raise DeclarationError(f"{where}: None says nothing; write Absent")
    try:
        shape = _base_shape(annotation, where)
        for mark in marks:
            for part in parts(mark):
                shape = _narrowed(shape, part, where)
    except ContradictoryCondition as error:
        raise ContradictoryCondition(f"{where} can never be met: {error}") from None
    return shape


def _peeled(annotation: object) -> tuple[object, list[object]]:
    """The type under any layers of `Annotated` and aliases, and their metadata."""
    marks: list[object] = []
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            marks += more
        elif isinstance(annotation, _ALIASES):
            annotation = annotation.__value__
        elif isinstance(origin, _ALIASES):
            annotation = _applied(origin, get_args(annotation))
        else:
            return annotation, marks


def _applied(alias: TypeAliasType, args: tuple[object, ...]) -> object:
    """What a generic alias stands for with these types for its parameters."""
    value: Any = alias.__value__
    given = dict(zip(alias.__type_params__, args, strict=True))
    if value in given:
        return given[value]
    wanted = tuple(given[each] for each in getattr(value, "__parameters__", ()))
    return value[wanted] if wanted else value


def _base_shape(annotation: object, where: str) -> Shape:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Union or origin is types.UnionType:
        return _optional(args, where)
    if origin is Literal:
        return _choices(args, where)
    if origin is tuple and args[1:] != (...,):
        return _fixed(annotation, args, where)
    if isinstance(origin, type) and issubclass(origin, _CONTAINERS):
        return _container(origin, args, where)
    if isinstance(annotation, type) and origin is None:
        if issubclass(annotation, Flag):
            raise refusal(annotation, where, "flags combine; use an Enum or Literal choices")
        if issubclass(annotation, Enum) and not len(annotation):
            raise refusal(annotation, where, "it has no members, so no value is one")
        if annotation in _PLAIN or issubclass(annotation, (Enum, BaseModel)):
            return Shape(annotation)
        if is_dataclass(annotation):
            return Shape(annotation)
    raise refusal(annotation, where, unsupported(annotation) or SUPPORTED)


def _optional(args: tuple[object, ...], where: str) -> Shape:
    kinds = [arg for arg in args if arg is not type(None)]
    if len(kinds) > 1:
        raise refusal(" | ".join(map(named, args)), where, of_union(kinds))
    inner = read_shape(kinds[0], where)
    if inner is None:
        raise DeclarationError(f"{where}: Absent cannot be optional; `T | None` may be absent")
    return replace(inner, maybe=True)


def _choices(args: tuple[object, ...], where: str) -> Shape:
    values = [arg for arg in args if arg is not None]
    if not values:
        raise DeclarationError(f"{where}: None says nothing; write Absent")
    for value in values:
        if not isinstance(value, _LITERALS):
            raise refusal(Literal[args], where, "choices are text, numbers or members of an Enum")
        if value != value or (isinstance(value, int) and abs(value) > MOST):
            raise refusal(Literal[args], where, "no choice is NaN, or beyond the range of a float")
    if len({kind(value) for value in values}) > 1:
        raise refusal(Literal[args], where, "choices of one type; make two nodes for two types")
    return Shape(values=frozenset(values), maybe=None in args)


def _container(origin: type, args: tuple[object, ...], where: str) -> Shape:
    """A container of any number of items."""
    if all(arg is Any or arg is object or arg is ... for arg in args):
        return Shape(origin)
    if not has_items(origin):
        named_args = zip(args, ("keys", "values"), strict=True)
        pair = tuple(_element(arg, f"{where}, its {part}") for arg, part in named_args)
        return _marked(origin, origin[pair], where)  # type: ignore[index]
    items = read_shape(args[0], f"{where}, its items")
    if items is None:
        raise DeclarationError(f"{where}: items cannot be Absent; write `T | None`")
    if issubclass(origin, (set, frozenset)) and getattr(items.base, "__hash__", None) is None:
        advice = f"no {items.base.__name__} can be in a set; write list[T], or freeze the class"
        raise refusal(origin[args], where, advice)  # type: ignore[index]
    return Shape(origin, items=items)


def _fixed(annotation: object, args: tuple[object, ...], where: str) -> Shape:
    """A tuple of so many items, each of a type of its own."""
    if not args:
        # The bare tuple of `typing` has no arguments either, but any length.
        return Shape(tuple) if annotation is typing.Tuple else Shape(tuple, max_len=0)  # noqa: UP006
    if all(arg is Any or arg is object for arg in args):
        return Shape(tuple, min_len=len(args), max_len=len(args))
    each = tuple(_element(arg, f"{where}, its items") for arg in args)
    return _marked(tuple, tuple[each], where)  # type: ignore[valid-type]


def _marked(origin: type, annotation: object, where: str) -> Shape:
    return Shape(origin, marks=frozenset({Typed(hashable(annotation, where))}))


def _element(annotation: object, where: str) -> object:
    """A type that only pydantic checks, in the one form that all ways to write it share."""
    inner, marks = _peeled(annotation)
    if inner is Any or annotation is JsonValue:
        return object if inner is Any else annotation
    if not marks and (inner is type(None) or get_origin(inner) is Literal):
        return inner
    if not marks and get_origin(inner) in (Union, types.UnionType):
        return reduce(or_, [_element(arg, where) for arg in get_args(inner)])
    shape = read_shape(annotation, where)
    if shape is None:
        raise DeclarationError(f"{where}: items cannot be Absent; write `T | None`")
    return write_shape(shape)


def _narrowed(shape: Shape, mark: object, where: str) -> Shape:
    """The values of `shape` that meet one more demand."""
    if isinstance(mark, Gone):
        raise DeclarationError(f"{where}: write Absent alone, without another type")
    wide = limit(shape.base, mark, where)
    both = shape.meet(wide)
    if both is None:
        asked = replace(wide, maybe=False).say()
        raise ContradictoryCondition(f"no value is {shape.say()} and {asked}")
    return both


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
    # In an order of their own, so that equal shapes are written alike.
    marks: list[object] = sorted(
        (mark for mark in shape.marks if not isinstance(mark, Typed)), key=repr
    )
    if shape.values is not None and shape.values != members(shape.base):
        written = Literal[tuple(sorted(shape.values, key=repr))]
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
    return reduce(or_, [written, None]) if shape.maybe else written
