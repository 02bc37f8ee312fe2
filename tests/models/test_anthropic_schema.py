from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dataforge.models.anthropic_schema import stated


def test_what_it_knows_goes_out_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {
            "b": {"type": "string", "enum": ["x", "y"]},
            "a": {"type": "array", "items": {"type": "number"}, "minItems": 1},
        },
        "required": ["b", "a"],
        "additionalProperties": False,
    }
    assert stated(schema) == schema
    assert list(stated(schema)["properties"]) == ["b", "a"]  # type: ignore[call-overload]


def test_a_short_range_of_whole_numbers_is_a_choice_and_a_long_one_is_told() -> None:
    assert stated({"type": "integer", "minimum": 1, "maximum": 3}) == {"enum": [1, 2, 3]}
    assert stated({"type": "integer", "minimum": 1, "maximum": 99}) == {
        "type": "integer",
        "description": "{maximum: 99, minimum: 1}",
    }


def test_what_it_does_not_know_is_told_beside_what_was() -> None:
    schema = {"type": "string", "pattern": "^a", "format": "color", "description": "A word."}
    assert stated(schema) == {
        "type": "string",
        "description": "A word.\n\n{format: color, pattern: ^a}",
    }


def test_alternatives_and_definitions_are_gone_through() -> None:
    bound = {"type": "string", "minLength": 2}
    made = stated({"oneOf": [bound, {"$ref": "#/$defs/d"}], "$defs": {"d": bound}})
    told = {"type": "string", "description": "{minLength: 2}"}
    assert made == {"anyOf": [told, {"$ref": "#/$defs/d"}], "$defs": {"d": told}}


WORDS = st.sampled_from(
    [
        *("type", "enum", "const", "items", "minItems", "minimum", "maximum", "format"),
        *("oneOf", "properties", "$defs", "required"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(WORDS, JSON))
def test_any_object_can_be_stated_and_written(schema: dict[str, object]) -> None:
    json.dumps(stated(schema), ensure_ascii=False).encode()
