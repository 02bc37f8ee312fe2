"""First come, first kept, against the loop that decides one pair after another in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dataforge.dedup.greedy import FirstCome, Outcome
from dataforge.dedup.predicate import reaches, refused_rows
from dataforge.errors import InputError

Floats = NDArray[np.float32]


def real_dot(left: Floats, right: Floats) -> Fraction:
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def one_by_one(rows: Floats, threshold: float) -> tuple[list[bool], list[int]]:
    """Whether each row is kept, and the first kept row it reaches."""
    kept: list[int] = []
    stays: list[bool] = []
    partner: list[int] = []
    for number, row in enumerate(rows):
        near = rows[kept].astype(np.float64) @ row.astype(np.float64)
        sure = near >= threshold + 1e-9
        doubt = np.flatnonzero((near >= threshold - 1e-9) & ~sure)
        for place in doubt:
            sure[place] = real_dot(rows[kept[place]], row) >= Fraction(threshold)
        met = np.flatnonzero(sure)
        stays.append(not len(met))
        partner.append(int(met[0]) if len(met) else -1)
        if not len(met):
            kept.append(number)
    return stays, partner


def unit(rows: NDArray[np.float64]) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / lengths, np.float32)


def spectral(count: int, dims: int, seed: int, decay: float = 1.0) -> Floats:
    """Rows with a falling spectrum, a fifth of them near one before."""
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((count, dims)) * np.arange(1, dims + 1) ** -decay
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    again = np.flatnonzero(draw.random(count) < 0.2)
    again = again[again > 0]
    rows[again] = rows[(draw.random(len(again)) * again).astype(int)]
    rows[again] += 0.5 / dims**0.5 * draw.standard_normal((len(again), dims))
    return unit(rows)


def whole(outcomes: list[Outcome]) -> tuple[list[bool], list[int], list[str]]:
    kept = [bool(one) for outcome in outcomes for one in outcome.kept]
    partner = [int(one) for outcome in outcomes for one in outcome.partner]
    similarity = [str(one) for outcome in outcomes for one in outcome.similarity]
    return kept, partner, similarity


def run(rows: Floats, threshold: float, block: int, cuts: list[int], method: str = "auto"
) -> tuple[list[bool], list[int], list[str]]:  # fmt: skip
    first_come = FirstCome(
        rows.shape[1], threshold, block=block, method="dense" if method == "dense" else "auto"
    )
    return whole([first_come.add(part) for part in np.split(rows, sorted(cuts))])


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Floats, float]:
    """Few directions and a threshold that is one of their cosines, or a step beside it."""
    dims = draw(st.integers(1, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    pool = unit(np.random.default_rng(seed).standard_normal((draw(st.integers(1, 12)), dims)))
    picks = draw(st.lists(st.integers(0, len(pool) - 1), max_size=60))
    rows = pool[picks]
    cosine = float(real_dot(pool[0], pool[-1]))
    step = draw(st.sampled_from([-2.0, 0.0, 2.0]))
    return rows, float(np.clip(np.nextafter(cosine, step) if step else cosine, -1, 1))


@given(crowded(), st.integers(1, 70), st.lists(st.integers(0, 60), max_size=4))
def test_ties_and_near_ties_fall_as_one_by_one(
    problem: tuple[Floats, float], block: int, cuts: list[int]
) -> None:
    rows, threshold = problem
    assert run(rows, threshold, block, cuts)[:2] == one_by_one(rows, threshold)


@settings(max_examples=10)
@given(
    st.integers(0, 99),
    st.integers(100, 1500),
    st.lists(st.integers(0, 2500), max_size=4),
    st.sampled_from([0.0, 0.5, 1.0, 1.5]),
)
def test_any_block_batch_and_method_give_the_same(
    seed: int, block: int, cuts: list[int], decay: float
) -> None:
    rows = spectral(2500, 160, seed, decay)
    expected = run(rows, 0.7, 512, [], "dense")
    assert expected[:2] == one_by_one(rows, 0.7)
    assert run(rows, 0.7, block, cuts) == expected


def test_rows_an_ulp_around_the_threshold_fall_as_one_by_one_while_pruned() -> None:
    base = spectral(1500, 160, 3)
    for threshold in (float(real_dot(base[3], base[9])), 0.7):
        nudged = base.copy()
        nudged[::2, 0] = np.nextafter(nudged[::2, 0], np.float32(2))
        nudged[1::2, 5] = np.nextafter(nudged[1::2, 5], np.float32(-2))
        rows = np.concatenate([base, nudged])
        assert run(rows, threshold, 128, [])[:2] == one_by_one(rows, threshold)


@pytest.mark.slow
def test_a_hundred_thousand_identical_rows_leave_the_first() -> None:
    rows = np.repeat(spectral(1, 64, 0), 100_000, axis=0)
    kept, partner, _ = run(rows, 0.7, 512, [])
    assert sum(kept) == 1
    assert kept[0]
    assert set(partner[1:]) == {0}


def test_rows_at_right_angles_all_stay() -> None:
    assert all(run(np.eye(700, dtype=np.float32), 0.7, 64, [])[0])


def test_rows_known_as_kept_count_as_the_first_of_all() -> None:
    rows = spectral(3000, 160, 8)
    whole_run = run(rows, 0.7, 256, [1400])
    head = FirstCome(160, 0.7).add(rows[:1400])
    rest = FirstCome(160, 0.7)
    rest.trust(rows[:1400][head.kept])
    assert tuple(one[1400:] for one in whole_run) == whole([rest.add(rows[1400:])])


def test_rows_of_another_kind_end_in_the_plain_product_with_the_same_result() -> None:
    rows = np.concatenate([spectral(1500, 160, 1), spectral(1500, 160, 2, decay=0.0)])
    first_come = FirstCome(160, 0.7)
    assert whole([first_come.add(rows)])[:2] == one_by_one(rows, 0.7)
    assert first_come.dense_blocks


def test_rows_without_direction_or_unit_length_are_refused_by_number() -> None:
    rows = spectral(6, 8, 0)
    rows[1, 3], rows[2, 0], rows[3], rows[4] = np.nan, np.inf, 0, rows[4] * 2
    outcome = FirstCome(8, 0.7).add(rows)
    assert [(one.row, one.reason) for one in outcome.refused] == [
        (1, "not a number"),
        (2, "infinite"),
        (3, "zero"),
        (4, "not of unit length"),
    ]
    assert not outcome.kept[1:5].any()
    assert outcome.kept[0]


def test_wrong_arrays_and_thresholds_are_refused() -> None:
    with pytest.raises(InputError, match="float32"):
        refused_rows(np.eye(2))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cosine"):
        FirstCome(8, 1.5)
    with pytest.raises(InputError, match="dimensions"):
        FirstCome(8, 0.7).add(np.eye(7, dtype=np.float32))


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(-1, 1))
def test_the_predicate_is_that_of_fractions(seed: int, dims: int, step: int) -> None:
    left, right = unit(np.random.default_rng(seed).standard_normal((2, dims)))
    exact = real_dot(left, right)
    threshold = float(exact)
    if step:
        threshold = float(np.nextafter(threshold, 2.0 * step))
    assert reaches(left, right, threshold) == (exact >= Fraction(threshold))
