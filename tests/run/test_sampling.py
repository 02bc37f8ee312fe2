"""Draws are uniform enough, depend on their path alone, and never on what was drawn before."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dataforge.run.sampling import Draws

PATHS = st.lists(st.one_of(st.integers(0, 50), st.text(max_size=8)), max_size=4).map(tuple)


@given(st.integers(), st.text(), st.integers(0, 10**6), PATHS, st.integers(1, 2**40))
def test_a_draw_is_in_range_and_always_the_same(
    run_seed: int, seed_id: str, walk: int, path: tuple[int | str, ...], n: int
) -> None:
    draws = Draws(run_seed, seed_id, walk)
    assert 0 <= draws.below(n, *path) < n
    assert draws.below(n, *path) == Draws(run_seed, seed_id, walk).below(n, *path)
    assert 0.0 <= draws.unit(*path) < 1.0


@given(st.lists(PATHS, min_size=1, max_size=20, unique=True), st.randoms(use_true_random=False))
def test_the_order_of_drawing_changes_nothing(
    paths: list[tuple[int | str, ...]], order: object
) -> None:
    draws = Draws(1, "seed", 0)
    straight = {path: draws.below(10**9, *path) for path in paths}
    assert {path: draws.below(10**9, *path) for path in reversed(paths)} == straight


@given(PATHS, PATHS)
def test_different_paths_draw_differently(
    one: tuple[int | str, ...], other: tuple[int | str, ...]
) -> None:
    draws = Draws(1, "seed", 0)
    same = draws.below(2**60, *one) == draws.below(2**60, *other)
    assert same == ([*map(repr, one)] == [*map(repr, other)])


def test_draws_are_spread_evenly_over_walks_and_steps() -> None:
    tally = Counter(Draws(7, "seed", walk).below(8, "choice", 2) for walk in range(8_000))
    # Chi-square with 7 degrees of freedom: 24.3 is its 99.9th percentile.
    assert sum((seen - 1_000) ** 2 / 1_000 for seen in tally.values()) < 24.3


def test_a_pick_follows_its_weights() -> None:
    tally = Counter(Draws(7, "seed", walk).pick([1.0, 3.0], "choice") for walk in range(4_000))
    assert 2_850 < tally[1] < 3_150


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=9), PATHS)
def test_a_pick_is_always_an_index(weights: list[float], path: tuple[int | str, ...]) -> None:
    assert 0 <= Draws(1, "seed", 0).pick(weights, *path) < len(weights)
