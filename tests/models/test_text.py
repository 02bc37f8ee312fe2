from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.models.text import clean, clean_json, reply_json

TEXT = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)


@given(TEXT)
def test_a_clean_text_can_be_written_and_keeps_all_that_could(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    if all(not 0xD800 <= ord(character) <= 0xDFFF for character in text):
        assert cleaned == text


def test_only_the_lone_surrogate_is_replaced() -> None:
    assert clean("a\ud800bc") == "a\ufffdbc"
    assert clean("a\ud83d\ude00b") == "a\U0001f600b"


@given(JSON)
def test_whatever_a_reply_escapes_what_is_read_of_it_can_be_written(value: object) -> None:
    json.dumps(reply_json(json.dumps(value)), ensure_ascii=False).encode()
    json.dumps(clean_json(value), ensure_ascii=False).encode()


@pytest.mark.parametrize("text", ['{"a": 1}', '```json\n{"a": 1}\n```', ' ```\n{"a": 1}``` '])
def test_a_code_fence_is_taken_off(text: str) -> None:
    assert reply_json(text) == {"a": 1}


@pytest.mark.parametrize(
    "text", ["", "so", '{"a": 1} so', '{"a": 1, "a": 2}', "[" * 100_000, '{"a":' * 10_000]
)
def test_what_is_not_one_json_value_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        reply_json(text)
