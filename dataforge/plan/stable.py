"""Values as text that is the same on every machine, for digests of what a node holds.

`repr` is not: it may show an address, or a set in any order. What has no stable text is refused
rather than guessed, since a digest that changes by itself would begin every run anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import FunctionType, MappingProxyType, NoneType

from pydantic import BaseModel

from dataforge.errors import DeclarationError

__all__ = ["held", "stable"]

_PLAIN = (NoneType, bool, int, float, str, bytes)


def stable(value: object, where: str) -> str:
    """The value as text; `DeclarationError` naming `where` for one that has none."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Enum):
        return f"{kind}.{value.name}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(stable(each, where) for each in value)}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(stable(each, where) for each in value))}}}"
    if isinstance(value, (dict, MappingProxyType)):
        return _pairs(value, where)
    if isinstance(value, (type, FunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, PurePath):
        return repr(str(value))
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r} {value.flags}"
    if is_dataclass(value) or isinstance(value, BaseModel):
        return f"{kind}{_pairs(held(value), where)}"
    raise DeclarationError(
        f"{where} holds a {type(value).__name__}, which has no text that stays the same; hold "
        "texts, numbers, lists, dicts, enums, dataclasses or pydantic models, and make the rest "
        "of them when the node runs"
    )


def held(thing: object) -> Mapping[str, object]:
    """What an object holds, by name."""
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    if isinstance(thing, BaseModel):
        return {name: getattr(thing, name) for name in type(thing).model_fields}
    return dict(getattr(thing, "__dict__", {}))


def _pairs(value: Mapping[object, object] | Mapping[str, object], where: str) -> str:
    pairs = (f"{stable(key, where)}: {stable(each, where)}" for key, each in value.items())
    return f"{{{', '.join(sorted(pairs))}}}"
