"""An aim is reached at the same walk whatever the order in which walks end."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.corpus.store import read_samples
from dataforge.run.aim import Aim
from dataforge.run.trace import Outcome
from tests.run.scene import Voice, bytes_of, order, run

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@given(st.lists(st.sampled_from(OUTCOMES), max_size=30), st.integers(1, 8), st.randoms())
def test_it_is_the_place_of_the_last_one_needed_however_walks_end(
    outcomes: list[Outcome], accept: int, order: random.Random
) -> None:
    accepted = [place for place, outcome in enumerate(outcomes) if outcome == "accepted"]
    expected = accepted[accept - 1] + 1 if len(accepted) >= accept else None
    places = list(range(len(outcomes)))
    order.shuffle(places)
    aim = Aim(accept)
    for place in places:
        aim.see(place, outcomes[place])
    assert aim.length == expected


def test_without_an_aim_none_is_reached() -> None:
    aim = Aim(None)
    aim.see(0, "accepted")
    assert not aim.reached


@pytest.mark.parametrize("concurrency", [1, 4, 16])
async def test_a_run_makes_so_many_and_the_same_at_any_concurrency(
    tmp_path: Path, concurrency: int
) -> None:
    asked = replace(order(60), accept=7)
    report = await run(replace(asked, concurrency=concurrency), tmp_path / "run")
    assert (report.accepted, report.pending, report.stopped) == (7, 0, "")
    assert report.walks == report.accepted + report.rejected < 60
    await run(replace(asked, concurrency=1), tmp_path / "one")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "one")


async def test_a_larger_aim_later_only_adds_and_repeats_no_call(tmp_path: Path) -> None:
    first, more, whole = Voice(), Voice(), Voice()
    await run(replace(order(60, first), accept=3, concurrency=5), tmp_path / "run")
    before = list(read_samples(tmp_path / "run" / "corpus.parquet"))
    await run(replace(order(60, more), accept=9), tmp_path / "run")
    after = list(read_samples(tmp_path / "run" / "corpus.parquet"))
    assert len(after) == 9
    assert {each.id for each in before} <= {each.id for each in after}
    await run(replace(order(60, whole), accept=9, concurrency=1), tmp_path / "whole")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert not set(first.asked) & set(more.asked)


async def test_an_aim_past_what_the_walks_give_is_the_whole_run(tmp_path: Path) -> None:
    report = await run(replace(order(6), accept=100), tmp_path / "aimed")
    await run(order(6), tmp_path / "plain")
    assert (report.walks, report.pending) == (6, 0)
    assert bytes_of(tmp_path / "aimed") == bytes_of(tmp_path / "plain")
