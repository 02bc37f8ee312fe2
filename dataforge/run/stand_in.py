"""Stand-ins for what only a reply can give: values of the right type that say which they are.

They show an author where replies go in later prompts. Lengths, marks and patterns are not kept, so
a stand-in seldom meets the condition that it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf

from dataforge.plan.bases import has_items, is_number
from dataforge.plan.shape import Shape

__all__ = ["by_schema", "quoted", "stand_in"]


def quoted(name: str) -> str:
    """A name in angle quotes, as it stands for a text."""
    return f"\u2039{name}\u203a"


def stand_in(name: str, shape: Shape) -> object:
    """A value for a field: one of its literals, else of its type; the quoted name for a text."""
    if shape.values is not None:
        return min(shape.values, key=str)
    if is_number(shape.base):
        return _number(shape)
    if has_items(shape.base):
        items = stand_in(name, shape.items) if shape.items is not None else quoted(name)
        try:
            return shape.base([items])
        except TypeError:
            return shape.base()
    return {name: quoted(name)} if shape.base is dict else quoted(name)


def _number(shape: Shape) -> float:
    low, high = shape.low, shape.high
    if low == -inf:
        number = min(0.0, high - 1)
    elif shape.low_open:
        number = low + 1 if high == inf else (low + high) / 2
    else:
        number = low
    return int(number) if shape.base is int else float(number)


def by_schema(schema: Mapping[str, object], word: str) -> str:
    """JSON as a schema asks for it, of stand-ins; patterns and lengths are not kept."""
    return json.dumps(_of_schema(schema, word), ensure_ascii=False)


def _of_schema(schema: Mapping[str, object], word: str) -> object:
    options = schema.get("enum")
    if isinstance(options, Sequence) and options:
        return options[0]
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        return {
            str(name): _of_schema(inner, word if name == "reply" else quoted(name))
            for name, inner in properties.items()
            if isinstance(inner, Mapping)
        }
    least = schema.get("minimum", 0)
    plain: Mapping[object, object] = {
        "integer": least, "number": least, "boolean": False, "array": [], "object": {}, "null": None
    }  # fmt: skip
    return plain.get(schema.get("type"), word)
