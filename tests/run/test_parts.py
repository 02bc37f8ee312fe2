"""A walk's part follows from its place in the plan, whatever else is asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataforge.run.parts import parts


@given(st.integers(1, 20_000), st.integers(0, 20_000))
def test_parts_cover_the_plan_once_and_more_walks_only_add(total: int, more: int) -> None:
    found = list(parts(total))
    assert [part.number for part in found] == list(range(len(found)))
    assert [part.start for part in found] == [0, *(part.stop for part in found[:-1])]
    assert found[-1].stop == total
    grown = list(parts(total + more))
    assert grown[: len(found) - 1] == found[:-1]
    assert grown[len(found) - 1].start == found[-1].start


def test_a_few_walks_are_shared_and_a_million_make_few_parts() -> None:
    assert len(list(parts(60))) == 4
    assert len(list(parts(1_000_000))) < 1_100
