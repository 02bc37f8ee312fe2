"""Values as text that is the same on every machine, for digests of what a node holds.

`repr` is not: it may show an address, or a set in any order. What has no stable text is refused
rather than guessed, since a digest that changes by itself would begin every run anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from pathlib import PurePath
from types import FunctionType, MappingProxyType, NoneType

from pydantic import BaseModel

from dataforge.errors import DeclarationError

__all__ = ["held", "stable"]

_PLAIN = (NoneType, bool, int, float, str, bytes)
_ITEMS = (list, tuple, set, frozenset, dict)
"""What an object may hold by being one."""


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
    """What an object holds, by name; not what a cached property worked out from it."""
    kinds = type(thing).__mro__
    names = [name for kind in kinds for name in _slots(kind)]
    names += [name for name in getattr(thing, "__dict__", {}) if not _cached(kinds, name)]
    if is_dataclass(thing):
        names += [field.name for field in fields(thing)]
    found = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
    if isinstance(thing, BaseModel):
        return found | dict(thing.__pydantic_extra__ or {}) | dict(thing.__pydantic_private__ or {})
    if isinstance(thing, _ITEMS):
        found["itself"] = thing
    return found


def _slots(kind: type) -> Iterator[str]:
    """The names of a class's own slots, as they are found on an object."""
    # Those of a pydantic model are its workings.
    slots = () if kind is BaseModel else vars(kind).get("__slots__", ())
    for slot in (slots,) if isinstance(slots, str) else slots:
        if slot not in ("__dict__", "__weakref__"):
            hidden = slot.startswith("__") and not slot.endswith("__")
            yield f"_{kind.__name__.lstrip('_')}{slot}" if hidden else slot


def _cached(kinds: tuple[type, ...], name: str) -> bool:
    return any(isinstance(vars(kind).get(name), cached_property) for kind in kinds)


def _pairs(value: Mapping[object, object] | Mapping[str, object], where: str) -> str:
    pairs = (f"{stable(key, where)}: {stable(each, where)}" for key, each in value.items())
    return f"{{{', '.join(sorted(pairs))}}}"
