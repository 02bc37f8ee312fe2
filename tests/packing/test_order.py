"""Orders are pure functions of their keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataforge.packing.order import permutation, rows_of_step, steps_per_epoch

rows = st.integers(1, 60)
seeds = st.integers(0, 2**63 - 1)


@given(rows, st.integers(1, 9), seeds)
def test_every_epoch_sees_every_row_once(count: int, batch: int, seed: int) -> None:
    steps = steps_per_epoch(count, batch)
    for epoch in range(3):
        seen = [
            int(row)
            for step in range(epoch * steps, (epoch + 1) * steps)
            for row in rows_of_step(count, batch, seed, step)
        ]
        assert sorted(seen) == list(range(count))


@given(rows, st.integers(1, 9), seeds, st.integers(0, 200))
def test_the_rows_of_a_step_need_no_step_before_it(
    count: int, batch: int, seed: int, step: int
) -> None:
    in_turn = [rows_of_step(count, batch, seed, earlier).tolist() for earlier in range(step + 1)]
    assert rows_of_step(count, batch, seed, step).tolist() == in_turn[-1]
    assert 1 <= len(in_turn[-1]) <= batch


def test_an_order_never_changes() -> None:
    # Runs begun before an upgrade must continue after it.
    assert permutation(8, 0).tolist() == [2, 7, 5, 1, 0, 4, 6, 3]
    assert permutation(8, 0, 0).tolist() == [0, 2, 1, 5, 4, 3, 6, 7]


def test_epochs_and_seeds_differ() -> None:
    orders = [permutation(50, seed, epoch) for seed in (0, 1) for epoch in (None, 0, 1)]
    assert len({order.tobytes() for order in orders}) == len(orders)
    assert all(np.array_equal(np.sort(order), np.arange(50)) for order in orders)
