"""Structs: what a node takes and makes, whose annotations are its conditions.

A struct is an ordinary pydantic model, frozen and strict, so what the plan reasons about is what is
checked at run time. The price is that a struct says only what a shape can say: validators, aliases
and defaults would let a value in that no annotation describes, and are refused.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from copy import deepcopy
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from dataforge.errors import ContradictoryCondition, DeclarationError, Unmet
from dataforge.plan.annotation import Absent, read_shape, write_shape
from dataforge.plan.line import field_line
from dataforge.plan.shape import Conditions, Shape, say

__all__ = [
    "Absent",
    "Struct",
    "breach",
    "broken",
    "conditions",
    "facts",
    "fill",
    "narrowed",
    "narrowed_struct",
    "struct_of",
    "view",
]


class Struct(BaseModel):
    """Base of what nodes take and make: immutable, strict, no field beyond those declared."""

    # Built when first read, so that importing the module stays cheap.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


_CONTAINERS = (list, tuple, set, frozenset)
_PLAIN = (str, int, float, bytes, type(None), Enum)

_SILENT_SETTINGS = {
    "arbitrary_types_allowed",
    "defer_build",
    "hide_input_in_errors",
    "ignored_types",
    "json_schema_extra",
    "protected_namespaces",
    "title",
    "use_attribute_docstrings",
}
"""Settings of a model that say nothing of which values it takes."""

S = TypeVar("S", bound=Struct)


@cache
def conditions(struct_type: type[Struct]) -> Conditions:
    """The conditions that a struct's annotations are.

    Raises `DeclarationError` naming the field whose annotation cannot be read.
    """
    name = struct_type.__name__
    _build(struct_type)
    _refuse_settings(struct_type)
    decorators = struct_type.__pydantic_decorators__
    validators = (
        decorators.validators
        | decorators.field_validators
        | decorators.root_validators
        | decorators.model_validators
    )
    if validators:
        raise DeclarationError(
            f"{field_line(struct_type, '')}{name}: the plan cannot read the validator "
            f"{min(validators)!r}; say it by annotations, or check inside the node and raise Unmet"
        )
    fields = struct_type.model_fields
    return MappingProxyType({name: _located(struct_type, name, fields[name]) for name in fields})


def _build(struct_type: type[Struct]) -> None:
    """Has pydantic read the annotations; an error of its own says the field as well."""
    name = struct_type.__name__
    try:
        struct_type.model_rebuild(raise_errors=True)
    except PydanticUndefinedAnnotation as error:
        field = _naming(struct_type, error.name or "")
        of = f"field {field!r} of {name}" if field else name
        raise DeclarationError(
            f"{field_line(struct_type, field)}{of}: the name {error.name!r} does not resolve; "
            "define or import it at run time, not under TYPE_CHECKING"
        ) from None
    except (PydanticUserError, SchemaError) as error:
        for field, info in struct_type.model_fields.items():
            _located(struct_type, field, info)
            try:
                TypeAdapter(_written(info))
            except (PydanticUserError, SchemaError) as found:
                raise DeclarationError(
                    f"{field_line(struct_type, field)}field {field!r} of {name}: pydantic cannot "
                    f"check it: {str(found).splitlines()[-1].strip()}"
                ) from None
        raise DeclarationError(f"{name}: {str(error).splitlines()[0]}") from None


def _naming(struct_type: type[Struct], name: str) -> str:
    """The field whose annotation, as written, has this name in it; empty where none has."""
    for kind in struct_type.__mro__:
        for field, written in vars(kind).get("__annotations__", {}).items():
            if re.search(rf"\b{re.escape(name)}\b", str(written)):
                return str(field)
    return ""


def _refuse_settings(struct_type: type[Struct]) -> None:
    for setting, value in struct_type.model_config.items():
        if setting not in _SILENT_SETTINGS and value != Struct.model_config.get(setting):
            raise DeclarationError(
                f"{field_line(struct_type, '')}{struct_type.__name__}: its model_config sets "
                f"{setting!r}; leave it out: a struct is frozen and strict, and its annotations "
                "alone say what it takes"
            )


def _located(struct_type: type[Struct], name: str, field: FieldInfo) -> Shape | None:
    """A field's condition; where it has none, the error says the line it stands on."""
    try:
        return _condition(struct_type, name, field)
    except (DeclarationError, ContradictoryCondition) as error:
        raise type(error)(f"{field_line(struct_type, name)}{error}") from None


def _condition(struct_type: type[Struct], name: str, field: FieldInfo) -> Shape | None:
    where = f"field {name!r} of {struct_type.__name__}"
    if field.alias or field.validation_alias:
        raise DeclarationError(f"{where}: an alias gives it two names; use one")
    shape = read_shape(_written(field), where)
    if not field.is_required() and (field.default_factory or field.default is not None):
        raise DeclarationError(
            f"{where}: a default would fill in what no node gave; make it `T | None = None` and "
            "let the node choose"
        )
    return shape


def _written(field: FieldInfo) -> Any:
    """A field's annotation with the metadata that pydantic took from it."""
    annotation: Any = field.annotation
    for mark in field.metadata:
        annotation = Annotated[annotation, mark]
    return annotation


def struct_of(name: str, conditions: Conditions) -> type[Struct]:
    """A struct type made from conditions, for nodes written as data."""
    fields: dict[str, Any] = {}
    for field, shape in conditions.items():
        if not field.isidentifier() or field.startswith("_") or hasattr(Struct, field):
            raise DeclarationError(
                f"{name}: {field!r} cannot be a field: a field is a Python name that does not "
                "begin with an underscore and is no method of a pydantic model"
            )
        optional = shape is None or shape.maybe
        fields[field] = (write_shape(shape), None if optional else ...)
    return create_model(name, __base__=Struct, **fields)


def narrowed(struct_type: type[Struct], choices: Mapping[str, object]) -> Conditions:
    """The conditions of some fields, each narrowed to a literal or a list of literals.

    Raises `DeclarationError` for a field the struct lacks, or a literal it does not allow.
    """
    found: dict[str, Shape | None] = {}
    for name, choice in choices.items():
        declared = conditions(struct_type)
        if declared.get(name) is None:
            fields = ", ".join(field for field, shape in declared.items() if shape is not None)
            raise DeclarationError(
                f"{struct_type.__name__} has no field {name!r} to narrow; it has {fields or 'none'}"
            )
        if choice in ([], (), frozenset()):
            raise DeclarationError(f"field {name!r} narrowed to {choice!r}: no choice is left")
        many = choice if isinstance(choice, (list, tuple, set, frozenset)) else (choice,)
        try:
            shape = Shape(values=frozenset[object](many))
        except (TypeError, ValueError, ContradictoryCondition) as error:
            raise DeclarationError(f"field {name!r} narrowed to {choice!r}: {error}") from None
        if not shape.within(declared[name] or shape):
            raise DeclarationError(
                f"field {name!r} of {struct_type.__name__} is {say(declared[name])}, so it cannot "
                f"be narrowed to {say(shape)}"
            )
        found[name] = shape
    return MappingProxyType(found)


def narrowed_struct(struct_type: type[S], choices: Mapping[str, object]) -> type[S]:
    """The struct with some fields narrowed as by `narrowed`; itself where there are none."""
    if not choices:
        return struct_type
    fields: dict[str, Any] = {
        name: (write_shape(shape), ...) for name, shape in narrowed(struct_type, choices).items()
    }
    return create_model(struct_type.__name__, __base__=struct_type, **fields)


def fill(struct_type: type[S], record: Mapping[str, object]) -> S:
    """The struct of a record's fields; those absent are None, those not declared are left out.

    Raises `Unmet` where the record does not meet the struct's conditions.
    """
    seen = {name: _own(record.get(name)) for name in struct_type.model_fields}
    try:
        filled = struct_type.model_validate(seen)
    except ValidationError as error:
        raise broken(struct_type, error) from None
    # Pydantic makes a model of a dict, which the record would go on to hold as a dict.
    unmet = breach(conditions(struct_type), seen)
    if unmet is not None:
        raise unmet
    return filled


def _own(value: object) -> object:
    """A value that a node may change without changing the record it came from."""
    return value if isinstance(value, _PLAIN) else deepcopy(value)


def facts(struct: Struct) -> dict[str, object]:
    """The fields of a struct that are present: those that are not None."""
    present = ((name, getattr(struct, name)) for name in type(struct).model_fields)
    return {name: value for name, value in present if value is not None}


def breach(conditions: Conditions, record: Mapping[str, object]) -> Unmet | None:
    """The first condition a record does not meet, as far as shapes tell; None when all are met."""
    for name, shape in conditions.items():
        value = record.get(name)
        met = value is None if shape is None else shape.holds(value)
        if not met:
            return _unmet(name, shape, value)
    return None


def broken(struct_type: type[Struct], error: ValidationError) -> Unmet:
    """What a struct that would not validate promised, and what was found instead."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    promised = conditions(struct_type)
    if name not in promised:
        return Unmet(f"{struct_type.__name__} has no field {name!r}", view(first["input"]))
    missing = first["type"] == "missing"
    unmet = _unmet(name, promised[name], None if missing else first["input"])
    return Unmet(unmet.reason, f"{unmet.detail}; {first['msg']}" if not missing else unmet.detail)


def _unmet(name: str, shape: Shape | None, value: object) -> Unmet:
    return Unmet(f"{name} is not {say(shape)}", _found(shape, value))


def _found(shape: Shape | None, value: object) -> str:
    """A value in short; of a container the first item that is not what it should be."""
    if value is None:
        return "it is absent"
    place = ""
    while shape is not None and shape.items is not None and isinstance(value, _CONTAINERS):
        wrong = [item for item in enumerate(value) if not shape.items.holds(item[1])]
        if not wrong:
            break
        number, value = wrong[0]
        place, shape = f"{place}item {number} ", shape.items
    return f"{place.rstrip().replace(' item', ', item')} is {view(value)}" if place else view(value)


def view(value: object) -> str:
    """A value in at most about 80 characters, for messages."""
    if isinstance(value, str):
        short = value if len(value) <= 60 else f"{value[:60]}…"
        return f"{short!r} ({len(value)} characters)"
    try:
        return f"{reprlib.repr(value)} ({type(value).__name__})"
    except ValueError:
        # Python writes no int of more than some thousand digits.
        return f"a value too long to show ({type(value).__name__})"
