"""`dataforge run --preview`: the first walks of a run, made for good; and what the whole will be.

They are the walks that the whole run begins with, in its own directory, so none is made twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, log10
from typing import TYPE_CHECKING

import click

from dataforge.errors import DataForgeError

if TYPE_CHECKING:
    from dataforge.commands.ordering import Request
    from dataforge.run.estimate import Estimate
    from dataforge.run.order import Order
    from dataforge.run.story import Story

__all__ = ["show_preview"]

_FEW = 30
"""Walks below which an error is itself little known."""


def show_preview(request: Request, count: int) -> None:
    """Makes the first `count` walks of a run, shows each in full and estimates the whole.

    Raises what `run` raises; that no walk was accepted only after they are shown.
    """
    from dataforge.commands.run import run
    from dataforge.run.story import stories, tell

    whole: list[Order] = []

    def first(order: Order) -> Order:
        whole.append(order)
        return replace(order, walks=min(count, order.walks), accept=None)

    refused: DataForgeError | None = None
    try:
        run(request, show=False, adjust=first)
    except DataForgeError as error:
        # All of its own kind mean that nothing was made; that none was accepted is of no kind.
        if type(error) is not DataForgeError:
            raise
        refused = error
    (order,) = whole
    seen = list(stories(request.out, _ids(order, min(count, order.walks))))
    for story in seen:
        click.echo(f"\n{tell(story, full=True)}")
    click.echo("")
    for line in _estimate(seen, order):
        click.echo(line)
    if refused is not None:
        raise refused


def _ids(order: Order, count: int) -> Iterator[str]:
    from dataforge.run.schedule import Plan, walk_id

    for planned in Plan(order.seeds.ids(), count, order.run_seed):
        yield walk_id(order.graph.name, order.run_seed, planned.seed_id, planned.walk)


def _estimate(stories: Sequence[Story], order: Order) -> Iterator[str]:
    from dataforge.run.estimate import MEASURES, estimate, spent

    seen = [spent(story, order.rates) for story in stories if story.walk.outcome != "failed"]
    if not seen:
        yield "no walk ended that the whole could be judged by"
        return
    accepted = sum(each.accepted for each in seen)
    walks = order.walks
    if order.accept is not None and accepted:
        walks = min(walks, max(len(seen), ceil(order.accept * len(seen) / accepted)))
    if walks <= len(seen):
        yield f"these {len(seen):,} walks are the whole:"
    else:
        yield f"the whole, {walks:,} walks, judged by these {len(seen):,} (± one standard error):"
    for name, measure in MEASURES.items():
        made = estimate([measure(each) for each in seen], walks)
        yield f"  {name:10}  {_said(made.total, made.error, whole=walks <= len(seen))}"
    costs = [each.usd for each in seen if each.usd is not None]
    if len(costs) < len(seen):
        yield f"  {'cost':10}  unknown: give models a price with --prices FILE"
    elif any(costs):
        yield f"  {'cost':10}  {_money(estimate(costs, walks))}"
    if walks > len(seen):
        left = (walks - len(seen)) * sum(each.seconds for each in seen) / len(seen)
        yield f"  {'time':10}  {_time(stories, left, walks, order.concurrency)}"
        if len(seen) < _FEW:
            yield (
                f"That is rough: {len(seen):,} walks know nothing of routes that none of them took."
            )
        yield "The same command without --preview goes on from here, and repeats none of its calls."


def _time(stories: Sequence[Story], left: float, walks: int, concurrency: int) -> str:
    """How long the rest takes: at best, with all walks in flight served as these; at worst, not."""
    from dataforge.run.estimate import at_once

    here = at_once(entry for story in stories for entry in story.calls.values())
    more = min(concurrency, walks) / min(concurrency, len(stories))
    fast, slow = _span(left / (here * max(1.0, more))), _span(left / here)
    if fast == slow:
        return f"{slow} more"
    return (
        f"{fast} to {slow} more, as the models keep up with {min(concurrency, walks):,} walks in "
        "flight or do not"
    )


def _said(total: float, error: float | None, *, whole: bool) -> str:
    if whole:
        return f"{total:,.0f}"
    if error is None:
        return f"about {_rounded(total, 2):,.0f} (one walk shows no spread)"
    if error == 0:
        return f"{total:,.0f} (these were all alike)"
    digits = max(2, round(log10(total / error)) + 2) if total > 0 else 1
    return f"{_rounded(total, digits):,.0f} ± {_rounded(error, 2):,.0f}"


def _money(made: Estimate) -> str:
    spread = "" if not made.error else f" ± ${_rounded(made.error, 2):,.2g}"
    return f"${made.total:,.4f}{spread}"


def _rounded(number: float, digits: int) -> float:
    """A number to so many digits that count."""
    return float(f"{number:.{digits}g}") if number else 0.0


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:,.1f} h"
