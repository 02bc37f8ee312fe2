"""Walks are spread evenly over seeds, the same every time, and a larger run only adds."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dataforge.run.schedule import Plan, walk_id

IDS = st.lists(st.text(max_size=4), min_size=1, max_size=30, unique=True)


@given(IDS, st.integers(1, 100), st.integers(0, 5))
def test_every_seed_gets_as_many_walks_as_any_other_or_one_less(
    ids: list[str], total: int, run_seed: int
) -> None:
    planned = list(Plan(ids, total, run_seed))
    assert len(set(planned)) == total
    counts = Counter(each.seed for each in planned)
    assert max(counts.values()) - min(counts[at] for at in range(len(ids))) <= 1
    assert all(
        {p.walk for p in planned if p.seed == at} == set(range(n)) for at, n in counts.items()
    )


@given(IDS, st.integers(1, 60), st.integers(0, 40))
def test_asking_for_more_walks_only_adds(ids: list[str], total: int, more: int) -> None:
    assert list(Plan(ids, total + more, 0))[:total] == list(Plan(ids, total, 0))


@given(IDS, st.integers(1, 60), st.data())
def test_by_seed_are_the_same_walks_as_are_begun_first(
    ids: list[str], total: int, data: st.DataObject
) -> None:
    plan = Plan(ids, total, 0)
    length = data.draw(st.integers(1, total))
    begun = list(plan)[:length]
    assert list(plan.by_seed(length)) == sorted(begun, key=lambda each: (each.seed, each.walk))
    assert all(ids[each.seed] == each.seed_id for each in begun)


@given(IDS, st.integers(1, 60), st.data())
def test_stretches_are_slices_of_the_plan(ids: list[str], total: int, data: st.DataObject) -> None:
    plan = Plan(ids, total, 0)
    start = data.draw(st.integers(0, total))
    stop = data.draw(st.integers(start, total))
    assert list(plan.stretch(start, stop)) == list(plan)[start:stop]


def test_a_few_walks_are_spread_over_the_seeds_and_not_taken_from_the_head() -> None:
    ids = [f"seed-{n}" for n in range(1_000)]
    chosen = [each.seed for each in Plan(ids, 20, 0)]
    assert min(chosen) < 200 < 800 < max(chosen)
    assert chosen != [each.seed for each in Plan(ids, 20, 1)]


def test_a_walk_is_named_by_all_that_tells_it_apart() -> None:
    names = {
        walk_id("graph", 0, "seed", 0),
        walk_id("graf", 0, "seed", 0),
        walk_id("graph", 1, "seed", 0),
        walk_id("graph", 0, "sead", 0),
        walk_id("graph", 0, "seed", 1),
    }
    assert len(names) == 5
    assert all(len(name) == 16 for name in names)
