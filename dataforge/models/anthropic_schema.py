"""A JSON Schema in the words that Anthropic's structured output knows.

It decodes by a part of JSON Schema and refuses the rest. What it does not know is told in the
description, so that the model may heed it; a short range of whole numbers becomes a choice among
them, which it does enforce. Objects are closed, since it takes no others. It resolves no `$ref`.
"""

from __future__ import annotations

from collections.abc import Mapping

from dataforge.models.text import clean_json

__all__ = ["stated"]

_KEPT = ("type", "enum", "const", "title", "required", "$ref", "default")
_LISTED = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_NAMED = ("properties", "$defs", "definitions")
_KNOWN: Mapping[str, tuple[object, ...]] = {
    "format": (
        *("date-time", "time", "date", "duration", "email"),
        *("hostname", "uri", "ipv4", "ipv6", "uuid"),
    ),
    "minItems": (0, 1),
    "additionalProperties": (False,),
}
_MOST_CHOICES = 32


def stated(schema: Mapping[str, object]) -> dict[str, object]:
    """The schema, with what cannot be enforced told in descriptions."""
    made: dict[str, object] = {}
    told: list[str] = []
    left = {str(name): clean_json(value) for name, value in schema.items()}
    choices = _choices(left)
    if choices:
        left = {name: left[name] for name in left.keys() - {"type", "minimum", "maximum"}}
        made["enum"] = choices
    for name, value in sorted(left.items()):
        if name in _KEPT or value in _KNOWN.get(name, ()):
            made[name] = value
        elif name in _LISTED and isinstance(value, list):
            made[_LISTED[name]] = [_part(each) for each in value]
        elif name in _NAMED and isinstance(value, Mapping):
            made[name] = {key: _part(each) for key, each in value.items()}
        elif name == "items":
            made[name] = _part(value)
        elif name not in ("description", "$schema"):
            told.append(f"{name}: {value}")
    if made.get("type") == "object":
        made["additionalProperties"] = False
    said = [str(left["description"])] if "description" in left else []
    if told:
        said.append("{" + ", ".join(told) + "}")
    if said:
        made["description"] = "\n\n".join(said)
    return made


def _part(schema: object) -> object:
    return stated(schema) if isinstance(schema, Mapping) else schema


def _choices(schema: Mapping[str, object]) -> list[int]:
    """The whole numbers that a schema allows, when it allows only a few."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if schema.get("type") != "integer" or not isinstance(least, int) or not isinstance(most, int):
        return []
    return list(range(least, most + 1)) if most - least < _MOST_CHOICES else []
