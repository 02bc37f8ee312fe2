"""What the first walks say of a whole run: sums that agree, errors that hold what they promise."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.models.base import Message, Params, Reply
from dataforge.run.estimate import at_once, estimate
from dataforge.run.journal import ChatEntry

COUNTS = st.lists(st.integers(0, 10_000).map(float), min_size=1, max_size=40)


@given(COUNTS)
def test_all_walks_seen_are_a_sum_and_no_estimate(seen: list[float]) -> None:
    made = estimate(seen, len(seen))
    assert (made.total, made.error) == (sum(seen), 0.0)
    assert estimate(seen, 1).total == sum(seen)


@given(COUNTS, st.integers(1, 10_000))
def test_the_rest_is_as_those_seen_and_more_of_it_is_less_certain(
    seen: list[float], more: int
) -> None:
    made = estimate(seen, len(seen) + more)
    assert made.total == pytest.approx(sum(seen) * (1 + more / len(seen)))
    further = estimate(seen, len(seen) + more + 1)
    assert made.error is None or (further.error is not None and further.error >= made.error)


def test_one_walk_shows_no_spread_but_of_a_share_none_is_certain() -> None:
    assert estimate([40.0], 100).error is None
    for seen in ([1.0], [0.0], [1.0] * 5, [0.0] * 5):
        error = estimate(seen, 100).error
        assert error is not None
        assert error > 5


def test_two_of_three_runs_lie_within_one_error_of_the_forecast() -> None:
    chance, within = random.Random(7), 0
    for _ in range(1000):
        walks = [chance.gauss(100, 30) for _ in range(200)]
        made = estimate(walks[:20], 200)
        assert made.error is not None
        within += abs(made.total - sum(walks)) <= made.error
    assert 0.6 < within / 1000 < 0.72


def entry(begin: float, seconds: float) -> ChatEntry:
    end = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=begin + seconds)
    return ChatEntry(
        key="k",
        walk_id="w",
        step="ask#0",
        name="n",
        node="ask",
        role="writer",
        weights="voice",
        attempt=1,
        seconds=seconds,
        at=end.isoformat(timespec="milliseconds"),
        messages=(Message("user", "x"),),
        params=Params(),
        reply=Reply(text="x", finish="stop", tokens_in=1, tokens_out=1),
    )


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 1.0),
        ([(0, 0)], 1.0),
        ([(0, 2), (2, 2)], 1.0),
        ([(0, 2), (0, 2), (0, 2)], 3.0),
        ([(0, 4), (1, 1), (10, 2)], 7 / 6),
    ],
)
def test_how_many_calls_ran_at_once_is_read_off_their_times(
    spans: list[tuple[float, float]], expected: float
) -> None:
    assert at_once(entry(*span) for span in spans) == pytest.approx(expected)
