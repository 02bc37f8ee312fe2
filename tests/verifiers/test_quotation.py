from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.verifiers.quotation import SharedRun, longest_shared_run
from dataforge.verifiers.words import words

texts = st.lists(st.sampled_from(["a", "B", "c,", "é", "水"]), max_size=25).map(" ".join)


def longest_by_hand(text: str, source: str) -> int:
    """The textbook table over both texts."""
    ours = [word.folded for word in words(text)]
    theirs = [word.folded for word in words(source)]
    best = 0
    above = [0] * (len(theirs) + 1)
    for mine in ours:
        row = [0] * (len(theirs) + 1)
        for at, other in enumerate(theirs):
            row[at + 1] = above[at] + 1 if mine == other else 0
        best = max(best, *row)
        above = row
    return best


@given(texts, texts)
def test_the_length_is_that_of_the_textbook_table(text: str, source: str) -> None:
    assert longest_shared_run(text, source).words == longest_by_hand(text, source)


@given(texts, texts)
def test_both_spans_hold_the_same_words(text: str, source: str) -> None:
    found = longest_shared_run(text, source)
    ours = [word.folded for word in words(text[slice(*found.span)])]
    theirs = [word.folded for word in words(source[slice(*found.source_span)])]
    assert ours == theirs
    assert len(ours) == found.words


def test_the_spans_say_where_the_run_stands() -> None:
    text, source = "He said: the OLD mill, again.", "By the old mill again."
    found = longest_shared_run(text, source)
    assert text[slice(*found.span)] == "the OLD mill, again"
    assert source[slice(*found.source_span)] == "the old mill again"


def test_the_earliest_of_equal_runs_is_given() -> None:
    assert longest_shared_run("a b x a b", "a b").span == (0, 3)


@pytest.mark.parametrize(("text", "source"), [("", "a"), ("a", ""), ("a", "b"), ("…", "…")])
def test_nothing_shared_is_a_run_of_no_words(text: str, source: str) -> None:
    assert longest_shared_run(text, source) == SharedRun(0, (0, 0), (0, 0))
