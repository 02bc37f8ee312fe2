"""What calls took adds up, however it is looked at; where walks were lost is told by node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import RateLimited, UsageError
from dataforge.models.base import Message, Params, Reply
from dataforge.run.budget import Budget
from dataforge.run.prices import NO_PRICES, Price, Prices
from dataforge.run.report import Report
from dataforge.run.spending import Usage, rolled_up, total
from tests.run.scene import Voice, bytes_of, echo, order, run

PRICES = Prices({"voice": Price(10.0, 100.0, 1.0)})

USAGE = st.builds(
    Usage,
    node=st.sampled_from("abc"),
    role=st.sampled_from("xy"),
    model=st.sampled_from("mn"),
    calls=st.integers(0, 99),
    cut=st.integers(0, 99),
    tokens_in=st.integers(0, 99),
    tokens_out=st.integers(0, 99),
    tokens_cached=st.integers(0, 99),
    tokens_reasoning=st.integers(0, 99),
    usd=st.none() | st.integers(0, 99).map(float),
    seconds=st.just(0.0),
    p50=st.just(0.0),
    p95=st.just(0.0),
)


@given(st.lists(USAGE, max_size=9))
def test_sums_by_node_role_and_model_are_the_same_sum(usages: list[Usage]) -> None:
    whole = total(usages)
    for by in (lambda u: u.node, lambda u: u.role, lambda u: u.model):
        parts = rolled_up(usages, by).values()
        for name in type(whole).__slots__:
            assert sum(getattr(part, name) for part in parts) == getattr(whole, name)


class Counting(Voice):
    """Tells of cached and reasoning tokens, as some endpoints do."""

    async def complete(self, messages: object, params: Params) -> Reply:
        assert isinstance(messages, tuple)
        reply = await super().complete(messages, params)
        return replace(reply, tokens_cached=4, tokens_reasoning=1)


async def test_tokens_money_and_time_are_told_by_node_role_and_model(tmp_path: Path) -> None:
    report = await run(replace(order(12, Counting()), prices=PRICES), tmp_path)
    spent = report.total
    assert spent.tokens_cached == 4 * spent.calls
    assert spent.tokens_reasoning == spent.calls
    fresh = spent.tokens_in - spent.tokens_cached
    usd = (fresh * 10 + spent.tokens_cached * 1 + spent.tokens_out * 100) / 1e6
    assert spent.usd == pytest.approx(usd)
    assert spent.unpriced == 0
    assert {(u.role, u.model) for u in report.usage} == {("writer", "voice"), ("answerer", "voice")}
    assert all(0 < u.p50 <= u.p95 for u in report.usage)
    assert f"${spent.usd:,.4f}" in (tmp_path / "report.md").read_text()
    assert Report.model_validate_json((tmp_path / "report.json").read_bytes()) == report


async def test_a_model_without_a_price_has_an_unknown_cost(tmp_path: Path) -> None:
    report = await run(replace(order(3), prices=NO_PRICES), tmp_path)
    assert report.total.unpriced == report.total.calls
    assert all(usage.usd is None for usage in report.usage)
    assert "| cost | unknown |" in (tmp_path / "report.md").read_text()


async def test_other_prices_tell_the_same_calls_anew(tmp_path: Path) -> None:
    await run(replace(order(3), prices=PRICES), tmp_path)
    doubled = Prices({"voice": Price(20.0, 200.0, 2.0)})
    again = await run(replace(order(3), prices=doubled), tmp_path)
    once = await run(replace(order(3), prices=PRICES), tmp_path)
    assert again.new == 0
    assert again.total.usd == pytest.approx(2 * once.total.usd)


async def test_the_funnel_says_where_walks_were_lost_and_what_came_of_attempts(
    tmp_path: Path,
) -> None:
    def say(messages: object, params: Params) -> str:
        assert isinstance(messages, tuple)
        last: Message = messages[-1]
        short = "Ask" in last.content and params.seed % 2
        return "no" if short else echo(messages, params)

    report = await run(order(40, Voice(say)), tmp_path)
    stages = {stage.node: stage for stage in report.funnel}
    assert stages["seed/gate"].reached == 40
    ask = stages["ask/summary"]
    assert ask.reached == 40
    assert ask.lost > 0
    assert ask.outcomes["off-schema"] == 2 * ask.lost + (ask.attempts - ask.reached - ask.lost)
    assert sum(stage.lost for stage in report.funnel) == report.rejected + report.failed
    assert stages["sample/chat"].reached == report.accepted
    judge = stages["judge/grounded"]
    assert judge.outcomes["judge-rejected"] > 0


async def test_rate_limits_are_counted_and_cost_no_attempt(tmp_path: Path) -> None:
    limits = 5

    def say(messages: object, params: Params) -> str:
        nonlocal limits
        assert isinstance(messages, tuple)
        if limits:
            limits -= 1
            raise RateLimited("slow down")
        return echo(messages, params)

    report = await run(order(6, Voice(say)), tmp_path / "run")
    await run(order(6), tmp_path / "free")
    assert report.failures == {"rate-limited": 5}
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "free")


async def test_a_budget_of_money_stops_a_run_that_is_then_continued_to_the_same_corpus(
    tmp_path: Path,
) -> None:
    bound = replace(order(20), prices=PRICES, budget=Budget(usd=0.004), concurrency=2)
    stopped = await run(bound, tmp_path / "run")
    assert stopped.pending > 0
    assert stopped.stopped.endswith("spent of the $0.0040 allowed")
    assert 0.004 <= stopped.total.usd < 0.004 + 2 * 0.002
    done = await run(order(20), tmp_path / "run")
    await run(order(20), tmp_path / "whole")
    assert done.pending == 0
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")


async def test_a_budget_of_money_without_a_price_is_refused_before_any_call(
    tmp_path: Path,
) -> None:
    voice = Voice()
    with pytest.raises(UsageError, match=r"'voice', which plays .*--prices FILE"):
        await run(replace(order(20, voice), budget=Budget(usd=1.0)), tmp_path)
    assert voice.asked == []


async def test_a_budget_of_walks_makes_so_many_more_and_leaves_none_half_made(
    tmp_path: Path,
) -> None:
    voice = Voice()
    bound = replace(order(20, voice), budget=Budget(walks=7), concurrency=4)
    for made in (7, 14, 20):
        report = await run(bound, tmp_path / "run")
        assert report.accepted + report.rejected == made
        assert report.pending == 20 - made
        assert report.reused == 0
    await run(order(20), tmp_path / "whole")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert len(voice.asked) == len(set(voice.asked))
