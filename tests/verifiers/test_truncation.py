# ruff: noqa: RUF001  (typographic quotes are what is tested)
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.verifiers.truncation import truncation

POEM = "Up in the bog it is thin as a thread,\na boot could dam it\nin town it slips by unseen"
LETTER = "Dear Ms. Lind,\n\nThe engineer comes tomorrow.\n\n"


@pytest.mark.parametrize(
    "text",
    [
        *("", "   \n", "Canberra", "It rained.", "Really?!", "See you! 🙂", "Price: 12 €"),
        *(
            "She said “No.”",
            "(It rained.)",
            "**Done.**",
            "It is `x = 1`.",
            "我们明天见。",
            "समाप्त।",
        ),
        *("[1, 1]", "</section>", "a, b and c", "Ash, Pewter, Misty, Cloud"),
        *(POEM, LETTER + "Best,\nJ. Castellan", LETTER + "Ilias", "# Tides\n\nThe moon does it."),
        *("- Ash\n- Pewter\n- Cloud", "1. Sow.\n2. Plant.\n3. Wait.", "- a:\n  - b\n  - c"),
        *("```python\nx = 1\n```", "Look:\n\n~~~\nx\n~~~", "| a | b |\n|---|---|\n| 1 | 2 |"),
        "**Monday** – Keys and passwords.\n**Friday** – The loans desk with a colleague.",
        "Four Students Rescued After Thirty Hours on Ledge",
    ],
)
def test_a_finished_text_is_not_called_cut(text: str) -> None:
    assert not truncation(text).cut


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("The moon pulls. The sea follows the", "ends in the middle of a sentence"),
        ("The moon pulls. The sea follows", "ends in the middle of a sentence"),
        ("The moon pulls, the sea follows,", "ends in the middle of a sentence"),
        ("It was a cold bright day and the", "ends in the middle of a sentence"),
        ("The steps are as follows:", "ends with a colon and nothing after it"),
        ("```python\nx = 1", "ends inside a code block"),
        ("1. Sow.\n2. Plant.\n3.", "ends with an empty list item"),
        ("1. Sow.\n2. Plant.\n- ", "ends with an empty list item"),
        ("1. Sow in March.\n2. Plant in May.\n3. Water", "ends in the middle of a list item"),
        ("It needs two things (a bowl.", "ends inside a bracket or emphasis"),
        ("All is well.\n\n**Next step", "ends inside a bracket or emphasis"),
        ("# Tides\n\nThe moon.\n\n## Springs", "ends with a heading and nothing under it"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3", "ends in the middle of a table"),
        ("| a | b |\n|---|---|", "ends in the middle of a table"),
        ("A first line.\n\nA second line.\n\nA third", "ends in the middle of a sentence"),
        ("One,\ntwo,\nthree.\n\nFour,\nfive,\nsix", "ends in the middle of a stanza"),
    ],
)
def test_a_text_that_stops_early_is_called_cut_and_why(text: str, why: str) -> None:
    found = truncation(text)
    assert (found.cut, found.why) == (True, why)


def test_a_broken_word_is_known_from_the_whole_one_elsewhere() -> None:
    text = "- Ardmore\n- the harb"
    assert not truncation(text).cut
    found = truncation(text, "Ask at the harbour office.")
    assert (found.cut, found.why) == (True, "ends in the middle of a word")


@pytest.mark.parametrize("last", ["cat", "harbour", "office"])
def test_a_word_in_its_own_right_is_not_called_broken(last: str) -> None:
    assert not truncation(f"- dog\n- {last}", "Two cats at the harbour office.").cut


def test_the_span_is_the_unfinished_line() -> None:
    text = "All is well.\nThe sea follows the\n\n"
    assert text[slice(*truncation(text).span)] == "The sea follows the"


@given(st.text(max_size=120), st.text(max_size=60))
def test_any_text_gets_a_grade_and_a_span_inside_it(text: str, context: str) -> None:
    found = truncation(text, context)
    assert 0 <= found.doubt <= 1
    assert 0 <= found.span[0] <= found.span[1] <= len(text)
    assert found.why or not found.cut
