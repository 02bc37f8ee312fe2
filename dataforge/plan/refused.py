"""What to write instead of an annotation that cannot be read.

A record holds data that can be stored as JSON and compared, so types that stand for behaviour, for
several types at once or for another notation are refused, each with the form that comes nearest.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import pathlib
import uuid
from collections.abc import Sequence
from enum import Enum
from inspect import isclass
from typing import (
    Any,
    ClassVar,
    Final,
    ForwardRef,
    Literal,
    NewType,
    NotRequired,
    Required,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from typing_extensions import is_protocol, is_typeddict

from dataforge.plan.bases import below, is_number
from dataforge.plan.shape import named

__all__ = ["of_union", "unsupported"]

_DATES = (datetime.date, datetime.time)
_AS_TEXT = (pathlib.PurePath, uuid.UUID)
_LIKE_A_LIST = (
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.deque,
    range,
)
_LIKE_A_DICT = (collections.abc.Mapping, collections.abc.MutableMapping)


def unsupported(annotation: object) -> str:
    """The nearest form to an annotation that cannot be read; empty where none is near."""
    origin = get_origin(annotation) or annotation
    if annotation is Any:
        return "write object for any value at all"
    if isinstance(annotation, NewType):
        return f"write {named(annotation.__supertype__)}, which is all it is at run time"
    if isinstance(annotation, TypeVar):
        return "write the type itself; a node's conditions are fixed"
    if isinstance(annotation, (str, ForwardRef)):
        return "the name does not resolve; define or import it at run time"
    if origin in (Final, ClassVar, Required, NotRequired):
        inner = named(get_args(annotation)[0]) if get_args(annotation) else "the type"
        return f"write {inner} alone: fields are frozen, and `T | None` may be absent"
    if is_typeddict(origin):
        return "write dict[K, V], or a pydantic model of the same fields"
    return _of_class(origin) if isclass(origin) else ""


def _of_class(origin: type) -> str:
    if issubclass(origin, _DATES):
        return "write str, and hold it as text, by ISO 8601 say"
    if issubclass(origin, _AS_TEXT):
        return "write str, and hold it as text"
    if issubclass(origin, datetime.timedelta):
        return "write float, for a number of seconds"
    if issubclass(origin, decimal.Decimal):
        return "write float, or int for a number of cents or the like"
    if issubclass(origin, complex):
        return "write two fields, each float"
    if issubclass(origin, (bytearray, memoryview)):
        return "write bytes"
    if issubclass(origin, _LIKE_A_DICT):
        return "write dict[K, V]"
    if origin in _LIKE_A_LIST or issubclass(origin, (range, collections.deque)):
        return "write list[T]"
    if origin.__module__ == "collections.abc" or origin is type or is_protocol(origin):
        return "a record holds data and no code; write what the code would give, or a setting"
    return ""


def of_union(kinds: Sequence[object]) -> str:
    """What to write instead of a union of these."""
    if all(get_origin(each) is Literal for each in kinds):
        values = ", ".join(repr(value) for each in kinds for value in get_args(each))
        return f"write Literal[{values}]"
    classes = [each for each in kinds if isinstance(each, type)]
    if len(classes) == len(kinds):
        if all(map(is_number, classes)):
            return "write float: an int may stand for one"
        for wide in classes:
            if all(below(each, wide) for each in classes):
                return f"write {named(wide)}, which the others are too"
        if all(issubclass(each, BaseModel) for each in classes):
            return "one type a field: give them a common base class, or make two nodes"
        if all(issubclass(each, Enum) for each in classes):
            return "one type a field: make one Enum of them, or two nodes"
    literals = [each for each in kinds if get_origin(each) is Literal]
    if len(classes) == 1 and len(literals) == len(kinds) - 1:
        (wide,) = classes
        if all(below(type(value), wide) for each in literals for value in get_args(each)):
            return f"write {named(wide)}, which the literals are too"
    return "one type a field: use Literal for choices, or make two nodes"
