"""Conditions as content files write them, read as the plan's shapes.

A text, number or truth value is that one literal, a list of them is a choice, and a table spells
a type with its bounds. Everything an annotation of a Python struct can say about one field of a
plain type can be said here, and nothing more; a graph cannot tell which of the two it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen

from dataforge.errors import DeclarationError, LibraryError
from dataforge.library.tables import Table, named, nearest
from dataforge.library.template import Template
from dataforge.plan.annotation import read_shape
from dataforge.plan.shape import Conditions, Shape
from dataforge.plan.struct import Absent, Struct, struct_of

__all__ = ["read_conditions", "read_struct"]

_TYPES: Mapping[str, object] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "list[str]": list[str],
    "list[int]": list[int],
    "list[float]": list[float],
    "dict[str, str]": dict[str, str],
    "list[dict[str, str]]": list[dict[str, str]],
}
_BOUNDS = {"ge": Ge, "gt": Gt, "le": Le, "lt": Lt}
_LENGTHS = {"min_len": MinLen, "max_len": MaxLen}
_KEYS = ("type", "choices", *_BOUNDS, *_LENGTHS, "optional", "absent")


def read_conditions(table: Table, words: Mapping[str, Template]) -> dict[str, Shape | None]:
    """Field -> shape, or None where the field must be absent.

    Texts may name `words`, which are known when the file is loaded, such as `{name}`.
    """
    return {
        field: read_shape(_annotation(table, field, words), table.where(field))
        for field in table.values
    }


def read_struct(table: Table, what: str, conditions: Conditions) -> type[Struct]:
    """The struct of conditions read from `table`; LibraryError for a field it cannot have."""
    try:
        return struct_of(what, conditions)
    except DeclarationError as error:
        raise LibraryError(f"{table.where()}: {error}") from error


def _annotation(table: Table, field: str, words: Mapping[str, Template]) -> object:
    value = table.values[field]
    if not field.isidentifier() or field.startswith("_"):
        table.refuse(field, "is no field name; use letters, digits and underscores")
    if isinstance(value, dict):
        return _from_table(table.table(field), table, field, words)
    return _literal(table, field, value, words)


def _literal(table: Table, field: str, value: object, words: Mapping[str, Template]) -> object:
    choices = value if isinstance(value, list) else [value]
    if not choices or not all(isinstance(choice, str | bool | int) for choice in choices):
        table.refuse(
            field,
            f"{value!r} is no condition; write a text or a list of texts for choices, or a table "
            f"such as {{ type = 'str', min_len = 1 }}",
        )
    if isinstance(value, str) and value in _TYPES:
        table.refuse(
            field,
            f"{value!r} would be that very text; for any {value} write {{ type = {value!r} }}, "
            f"for the text itself {{ choices = [{value!r}] }}",
        )
    return Literal[tuple(_worded(table, field, choice, words) for choice in choices)]


def _worded(table: Table, field: str, choice: object, words: Mapping[str, Template]) -> object:
    """The choice with its words filled in; choices are settled before any record exists."""
    if not isinstance(choice, str):
        return choice
    where = table.where(field)
    template = Template.parse(choice, where).inlined(words, where)
    for hole in sorted(template.names):
        table.refuse(
            field,
            f"names {{{hole}}}, which is not known when the file is loaded"
            f"{nearest(hole, words)} A choice may name: {named(words)}",
        )
    return template.fill({})


def _from_table(inner: Table, table: Table, field: str, words: Mapping[str, Template]) -> object:
    inner.known(*_KEYS, of="a condition")
    if _flag(inner, "absent"):
        if len(inner.values) > 1:
            inner.refuse("absent", "an absent field has no other conditions; leave them out")
        return Absent
    if "choices" in inner.values:
        if "type" in inner.values and inner.text("type") not in ("str", "int", "bool"):
            inner.refuse("type", "choices are of type str, int or bool")
        annotation = _literal(inner, "choices", inner.values["choices"], words)
    elif "type" in inner.values:
        name = inner.text("type")
        if name not in _TYPES:
            inner.refuse(
                "type", f"{name!r} is no type here{nearest(name, _TYPES)} Allowed: {named(_TYPES)}"
            )
        annotation = _TYPES[name]
    else:
        inner.refuse("type", "a condition needs type, choices or absent")
    marks: list[object] = []
    for key, bound in _BOUNDS.items():
        if key in inner.values:
            marks.append(bound(inner.number(key, 0, low=float("-inf"))))
    for key, length in _LENGTHS.items():
        if key in inner.values:
            marks.append(length(inner.whole(key, 0, low=0)))
    if marks:
        annotation = Annotated[(annotation, *marks)]
    if _flag(inner, "optional"):
        annotation = reduce(or_, (annotation, None))
    return annotation


def _flag(inner: Table, key: str) -> bool:
    if key in inner.values and not isinstance(inner.values[key], bool):
        inner.refuse(key, f"needs true or false, not {inner.values[key]!r}")
    return bool(inner.values.get(key, False))
