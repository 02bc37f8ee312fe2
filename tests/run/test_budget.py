"""A budget stops a sitting cleanly, and the next one goes on from there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dataforge.run.budget import Budget
from tests.run.scene import Voice, bytes_of, order, run


async def test_a_budget_of_tokens_stops_a_run_that_is_then_continued_to_the_same_corpus(
    tmp_path: Path,
) -> None:
    whole, first, rest = Voice(), Voice(), Voice()
    await run(order(20, whole), tmp_path / "whole")
    stopped = await run(
        replace(order(20, first), budget=Budget(tokens=200), concurrency=2), tmp_path / "run"
    )
    assert stopped.pending > 0
    assert stopped.stopped.endswith("tokens used of the 200 allowed")
    done = await run(order(20, rest), tmp_path / "run")
    assert (done.pending, done.stopped) == (0, "")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert sorted(first.asked + rest.asked) == sorted(whole.asked)


async def test_a_budget_of_tokens_passes_by_no_more_than_what_is_in_flight(tmp_path: Path) -> None:
    voice = Voice()
    report = await run(replace(order(20, voice), budget=Budget(tokens=60), concurrency=1), tmp_path)
    spent = report.total.tokens_in + report.total.tokens_out
    assert 60 <= spent < 60 + 15


async def test_a_budget_of_time_stops_a_run(tmp_path: Path) -> None:
    report = await run(replace(order(200), budget=Budget(seconds=1e-9)), tmp_path)
    assert report.pending > 0
    assert "seconds allowed are over" in report.stopped


async def test_a_budget_that_is_not_passed_changes_nothing(tmp_path: Path) -> None:
    await run(order(6), tmp_path / "free")
    report = await run(
        replace(order(6), budget=Budget(tokens=10**9, seconds=3600.0)), tmp_path / "bound"
    )
    assert (report.pending, report.stopped) == (0, "")
    assert bytes_of(tmp_path / "free") == bytes_of(tmp_path / "bound")
