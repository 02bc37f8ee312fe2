"""What to write instead of an annotation that cannot be read.

A record holds data that can be stored as JSON and compared, so types that stand for behaviour, for
several types at once or for another notation are refused, each with the form that comes nearest.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import fractions
import ipaddress
import pathlib
import re
import uuid
from collections.abc import Sequence
from dataclasses import is_dataclass
from enum import Enum
from inspect import isclass
from typing import (
    Any,
    ClassVar,
    Final,
    ForwardRef,
    Literal,
    LiteralString,
    Never,
    NewType,
    NoReturn,
    NotRequired,
    Required,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import AnyUrl, BaseModel, SecretStr
from typing_extensions import ReadOnly, is_protocol, is_typeddict

from dataforge.errors import DeclarationError
from dataforge.plan.bases import below, is_number
from dataforge.plan.shape import named

__all__ = ["SUPPORTED", "of_union", "refusal", "unsupported"]

SUPPORTED = (
    "supported are str, int, float, bool, bytes, Literal choices of one type, an Enum, a pydantic "
    "model, a dataclass, list[T], dict[K, V], tuple, set, any of these `| None`, and Absent"
)

_DATES = (datetime.date, datetime.time)
_AS_TEXT = (pathlib.PurePath, uuid.UUID, AnyUrl, SecretStr, re.Pattern)
_ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address)
_LIKE_A_LIST = (
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.abc.Reversible,
)
_SEQUENCES = (collections.abc.Sequence, collections.deque)
_BUILT_IN = (str, bytes, bool, int, float, dict, list, set, frozenset)


def refusal(asked: object, where: str, advice: str) -> DeclarationError:
    """The error of an annotation, or a piece of one, that cannot be read."""
    said = asked if isinstance(asked, str) else named(asked)
    said = said if len(said) <= 100 else f"{said[:100]}…"
    return DeclarationError(f"{where}: cannot read {said}: {advice}")


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
    if origin in (Never, NoReturn):
        return "no value is one; write Absent, or leave the field out"
    if origin is LiteralString:
        return "write str"
    if origin in (Final, ClassVar, Required, NotRequired, ReadOnly):
        inner = named(get_args(annotation)[0]) if get_args(annotation) else "the type"
        return f"write {inner} alone: fields are frozen, and `T | None` may be absent"
    if is_typeddict(origin):
        return "write dict[K, V], or a pydantic model of the same fields"
    return _of_class(origin) if isclass(origin) else ""


def _of_class(origin: type) -> str:
    if issubclass(origin, _DATES):
        return "write str, and hold it as text, by ISO 8601 say"
    if issubclass(origin, (*_AS_TEXT, *_ADDRESSES)):
        return "write str, and hold it as text"
    if issubclass(origin, datetime.timedelta):
        return "write float, for a number of seconds"
    if issubclass(origin, fractions.Fraction):
        return "write float, or two fields, each int"
    if issubclass(origin, decimal.Decimal):
        return "write float, or int for a number of cents or the like"
    if issubclass(origin, complex):
        return "write two fields, each float"
    if issubclass(origin, (bytearray, memoryview)):
        return "write bytes"
    if is_dataclass(origin):
        return f"write {origin.__name__}, or a dataclass of its own for these types"
    if issubclass(origin, tuple):
        return "write a dataclass, or a pydantic model of the same fields"
    for plain in _BUILT_IN:
        if issubclass(origin, plain):
            return f"write {plain.__name__}, or a dataclass around one"
    return _of_protocol(origin)


def _of_protocol(origin: type) -> str:
    if issubclass(origin, collections.abc.Mapping):
        return "write dict[K, V]"
    if issubclass(origin, collections.abc.Set):
        return "write set[T]"
    if origin in _LIKE_A_LIST or issubclass(origin, _SEQUENCES):
        return "write list[T]"
    if origin.__module__ == "collections.abc" or origin is type or is_protocol(origin):
        return "a record holds data and no code; write what the code would give, or a setting"
    if hasattr(origin, "__array__"):
        return "write list[float], or list[int]"
    return "make it a dataclass, or a pydantic model"


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
