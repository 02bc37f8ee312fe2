from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.verifiers.repetition import TAIL, repetition

PROSE = (
    "The train was late again. We ate our sandwiches on the platform and watched the pigeons "
    "quarrel over the crusts. A porter whistled something that nobody could place."
)


@given(st.text(max_size=200))
def test_the_share_is_a_share_and_the_phrase_stands_at_its_span(text: str) -> None:
    found = repetition(text)
    assert 0 <= found.share <= 1
    assert text[slice(*found.span)] == found.phrase
    assert (found.times >= 2) == bool(found.phrase)


@given(st.integers(3, 12))
def test_the_more_often_a_sentence_is_said_the_greater_the_share(times: int) -> None:
    text = "The keeper wound the lamp. "
    assert repetition(text * times).share > repetition(text * (times - 1)).share


def test_prose_repeats_nothing() -> None:
    assert repetition(PROSE).share == 0
    assert repetition(PROSE).phrase == ""


def test_a_loop_is_shown_as_its_phrase_and_how_often_it_is_said() -> None:
    found = repetition(f"{PROSE} It was a long day. It was a long day. It was a long day.")
    assert found.phrase.startswith("It was a long day")
    assert found.times == 3


def test_paraphrases_of_one_sentence_count_as_repetition() -> None:
    text = (
        "Try to sleep at the same time every night. Try each night to sleep at the same time. "
        "Every night try at the same time to sleep."
    )
    assert repetition(text).share > 0.6


def test_a_long_sound_start_does_not_excuse_a_loop_at_the_end() -> None:
    sound = " ".join(f"word{number}" for number in range(4 * TAIL))
    loop = "and then the lamp went out " * 12
    assert repetition(f"{sound} {loop}").share > 0.8


def test_a_stutter_inside_one_word_is_seen() -> None:
    found = repetition("That is funny: " + "ha" * 40)
    assert found.share > 0.8
    assert found.phrase == "ha"


@pytest.mark.parametrize("text", ["", "Canberra.", "10000000000000000", "----------------", "a b"])
def test_short_texts_numbers_and_rules_repeat_nothing(text: str) -> None:
    assert repetition(text).share == 0
