"""The report says how many walks ended how and where, and what it took."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dataforge.errors import RunError
from dataforge.run.report import Report, table
from dataforge.run.seed import Seed, SeedStore
from dataforge.run.tally import Tally, conserve
from tests.run.scene import order, run, seeds


async def test_the_table_lists_ends_by_node_and_reason(tmp_path: Path) -> None:
    asked = order(3)
    report = await run(
        replace(
            asked,
            seeds=SeedStore.of("seeds.jsonl", [Seed("short", "too short"), *seeds(2)]),
            judge_card="AUC 0.97 against irrelevant",
            skipped_seeds=["seeds.jsonl:4: not JSON"],
            skipped_count=1,
        ),
        tmp_path,
    )
    rows = table(report)
    assert ("walks", "3", "asked for") in rows
    assert ("accepted", "2", "in the corpus") in rows
    assert ("", "1", "seed/gate: passage is not str of at least 20 characters") in rows
    page = (tmp_path / "report.md").read_text()
    for part in ("AUC 0.97 against irrelevant", "seeds.jsonl:4: not JSON", "| judge | code:coin |"):
        assert part in page
    assert Report.model_validate_json((tmp_path / "report.json").read_bytes()) == report


async def test_usage_covers_every_sitting_and_speed_only_the_last(tmp_path: Path) -> None:
    first = await run(replace(order(10), walks=5), tmp_path)
    again = await run(order(10), tmp_path)
    assert again.total.calls == first.new + again.new
    idle = await run(order(10), tmp_path)
    assert (idle.total.calls, idle.new, idle.tokens_per_s) == (again.total.calls, 0, None)


@pytest.mark.parametrize(
    ("on_disk", "stopped"),
    [
        ({"accepted": 3}, False),
        ({"accepted": 2, "rejected": 2}, False),
        ({"accepted": 2, "rejected": 1}, False),
        ({"accepted": 4, "rejected": 1}, True),
    ],
)
def test_walks_that_do_not_add_up_are_a_bug_and_said(
    on_disk: dict[str, int], stopped: bool
) -> None:
    tally = Tally(walks=4, now=Counter({"accepted": 3, "rejected": 1}))
    with pytest.raises(RunError, match="do not add up"):
        conserve(tally, Counter(on_disk), stopped)  # type: ignore[arg-type]


def test_walks_left_by_a_stop_are_pending() -> None:
    tally = Tally(walks=9, earlier=Counter({"accepted": 2}), now=Counter({"rejected": 1}))
    assert conserve(tally, Counter({"accepted": 2, "rejected": 1, "failed": 2}), True) == 4
