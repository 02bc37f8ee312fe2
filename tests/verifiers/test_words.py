# ruff: noqa: RUF001  (typographic quotes are what is tested)
from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.verifiers.words import sentences, words


def folded(text: str) -> list[str]:
    return [word.folded for word in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The keeper's lamp, 1911!", ["the", "keeper's", "lamp", "1911"]),
        ("that’s ʼtis “quoted”", ["that's", "tis", "quoted"]),
        ("Straße ＡＢＣ", ["strasse", "abc"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("老磨坊a1水", ["老", "磨", "坊", "a1", "水"]),
        ("안녕 세상", ["안녕", "세상"]),
        ("— … !!! 🙂", []),
        ("snake_case it''s x'", ["snake", "case", "it", "s", "x"]),
    ],
)
def test_words_are_what_a_reader_of_the_script_would_count(text: str, expected: list[str]) -> None:
    assert folded(text) == expected


def test_an_accent_composed_in_another_way_makes_the_same_word() -> None:
    assert folded("caf\u00e9") == folded("cafe\u0301")


@given(st.text(max_size=200))
def test_words_stand_in_order_apart_and_hold_letters_or_digits(text: str) -> None:
    found = words(text)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(any(char.isalnum() for char in text[word.start : word.end]) for word in found)


@given(st.text(max_size=200))
def test_no_letter_or_digit_is_left_out_of_the_words(text: str) -> None:
    inside = {at for word in words(text) for at in range(word.start, word.end)}
    assert all(at in inside for at, char in enumerate(text) if char.isalnum())


@given(st.text(alphabet="ab1' -.", max_size=80))
def test_the_fast_way_for_ascii_agrees_with_the_general_one(text: str) -> None:
    general = words(text + " é")[:-1]
    assert general == words(text)


def test_sentences_end_at_stops_and_line_breaks() -> None:
    text = "One. Two?\n\n- three\n“Four.” Five 老磨坊。在河边"
    assert [text[a:b] for a, b in sentences(text)] == [
        *("One.", "Two?", "- three", "“Four.”", "Five 老磨坊。", "在河边")
    ]


def test_a_line_without_a_word_is_no_sentence() -> None:
    assert sentences("***\n---\n\n") == ()
