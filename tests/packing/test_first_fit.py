"""First-Fit-Decreasing against the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import PackingError
from dataforge.packing import first_fit
from dataforge.packing.first_fit import Bins, first_fit_decreasing, shuffled


def textbook(lengths: list[int], capacity: int) -> list[list[int]]:
    """Longest first, ties in input order; each into the first bin with room."""
    bins: list[list[int]] = []
    room: list[int] = []
    for sample in sorted(range(len(lengths)), key=lambda sample: -lengths[sample]):
        for number, left in enumerate(room):
            if left >= lengths[sample]:
                bins[number].append(sample)
                room[number] -= lengths[sample]
                break
        else:
            bins.append([sample])
            room.append(capacity - lengths[sample])
    return bins


def listed(bins: Bins) -> list[list[int]]:
    return [one.tolist() for one in bins]


capacities = st.integers(1, 40)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], int]:
    capacity = draw(capacities)
    return draw(st.lists(st.integers(1, capacity), max_size=80)), capacity


@given(problems())
def test_the_bins_are_those_of_the_textbook(problem: tuple[list[int], int]) -> None:
    lengths, capacity = problem
    assert listed(first_fit_decreasing(lengths, capacity)) == textbook(lengths, capacity)


@pytest.mark.slow
def test_compiled_and_interpreted_make_the_same_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    draws = np.random.default_rng(0)
    monkeypatch.setattr(first_fit, "_WORTH_COMPILING", 0)
    for capacity in (1, 7, 64, 1000):
        lengths = draws.integers(1, capacity + 1, size=3000)
        made = first_fit_decreasing(lengths, capacity)
        assert listed(made) == textbook(lengths.tolist(), capacity)
    assert listed(first_fit_decreasing([], 5)) == []


@given(problems(), st.integers(0, 2**32))
def test_shuffling_keeps_the_bins_and_depends_on_the_seed_alone(
    problem: tuple[list[int], int], seed: int
) -> None:
    bins = first_fit_decreasing(*problem)
    once, again = shuffled(bins, seed), shuffled(bins, seed)
    assert listed(once) == listed(again)
    assert sorted(listed(once)) == sorted(listed(bins))


@pytest.mark.parametrize("lengths", [[0, 1], [3, 11], [-1]])
def test_a_length_that_fits_no_row_is_refused(lengths: list[int]) -> None:
    with pytest.raises(PackingError, match="rows of 10 tokens"):
        first_fit_decreasing(lengths, 10)
