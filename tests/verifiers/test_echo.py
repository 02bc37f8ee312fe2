from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataforge.verifiers.echo import Echo, echo

INSTRUCTION = "Explain to a new gardener why one should never water the leaves of a tomato plant."


def test_the_instruction_itself_is_all_echo() -> None:
    assert echo(INSTRUCTION.upper(), INSTRUCTION) == Echo(1.0, 1.0, (0, len(INSTRUCTION) - 1))


def test_an_answer_in_its_own_words_is_no_echo() -> None:
    assert echo("Wet leaves invite blight, so pour the water on the soil.", INSTRUCTION).share == 0


def test_shared_names_and_short_phrases_weigh_nothing() -> None:
    answer = "The leaves of a tomato rot; never water the leaves if you can help it."
    assert echo(answer, INSTRUCTION).share == 0


def test_the_span_is_the_longest_stretch_taken_over() -> None:
    answer = "I shall. Explain to a new gardener why one should not."
    found = echo(answer, INSTRUCTION)
    assert answer[slice(*found.span)] == "Explain to a new gardener why one should"
    assert found.share == 8 / 11


def test_a_quotation_covers_little_of_a_long_instruction() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    found = echo(" ".join(f"word{number}" for number in range(40, 52)), text)
    assert (found.share, found.covered) == (1.0, 0.12)


@given(st.text(max_size=80), st.text(max_size=80), st.integers(1, 9))
def test_shares_are_shares(answer: str, instruction: str, run: int) -> None:
    found = echo(answer, instruction, run)
    assert 0 <= found.share <= 1
    assert 0 <= found.covered <= 1
