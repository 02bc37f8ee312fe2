"""Percentiles are within their stated error of the exact ones, in bounded memory."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from dataforge.run.latency import ERROR, Latency

SECONDS = st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=200)


@given(SECONDS, st.floats(0.01, 1.0))
def test_a_percentile_is_within_one_percent_of_the_exact_one(
    seconds: list[float], share: float
) -> None:
    latency = Latency()
    for each in seconds:
        latency.see(each)
    exact = sorted(seconds)[ceil(share * len(seconds)) - 1]
    assert abs(latency.percentile(share) - exact) <= exact * ERROR * (1 + 1e-9)


def test_of_none_it_is_nothing() -> None:
    assert Latency().percentile(0.5) == 0.0
