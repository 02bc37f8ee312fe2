"""What a whole run will come to, judged by its first walks.

The first walks of a plan are spread over the seeds by a draw, so they are taken for a fair sample
of the rest: the rest is their mean times its number. The error is that of such a forecast, from the
spread among the walks seen and how many they are. It knows nothing of routes that none of them
took, of a model that slows down under load, or of drift along the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from statistics import fmean, variance

from dataforge.run.journal import ChatEntry, Entry
from dataforge.run.prices import Price
from dataforge.run.story import Story

__all__ = ["MEASURES", "Estimate", "Spent", "at_once", "estimate", "spent"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What one walk came to."""

    accepted: bool
    calls: int
    """Of chat models."""
    tokens_in: int
    tokens_out: int
    usd: float | None
    """None where a call's price is not known."""
    seconds: float
    """Sum of the times of its calls and judgings."""


MEASURES: Mapping[str, Callable[[Spent], float]] = {
    "accepted": lambda each: each.accepted,
    "calls": lambda each: each.calls,
    "tokens in": lambda each: each.tokens_in,
    "tokens out": lambda each: each.tokens_out,
}
"""What is estimated of a run, by name, beside what it costs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A sum over all walks of a run."""

    total: float
    error: float | None
    """One standard error of the forecast; None where a single walk shows no spread."""


def spent(story: Story, rates: Mapping[str, Price | None]) -> Spent:
    """What a walk came to, by the journal; `rates`: role -> price of its model."""
    chats = [entry for entry in story.calls.values() if isinstance(entry, ChatEntry)]
    priced = [(rates.get(entry.role), entry.reply) for entry in chats]
    costs = [None if price is None else price.of(reply) for price, reply in priced]
    return Spent(
        accepted=story.walk.outcome == "accepted",
        calls=len(chats),
        tokens_in=sum(entry.reply.tokens_in for entry in chats),
        tokens_out=sum(entry.reply.tokens_out for entry in chats),
        usd=None if None in costs else sum(each or 0.0 for each in costs),
        seconds=sum(entry.seconds for entry in story.calls.values()),
    )


def estimate(seen: Sequence[float], walks: int) -> Estimate:
    """The sum over `walks` walks, of which these were `seen`, at least one.

    The error of a forecast of m more from n seen of variance s2 is sqrt(m * m * s2 / n + m * s2).
    Where all seen are 0 or 1, s2 is that of a share of (k + 1) / (n + 2): that none of five was
    turned away does not make it certain of the rest.
    """
    left = max(0, walks - len(seen))
    total = sum(seen) + left * fmean(seen)
    if not left:
        return Estimate(total, 0.0)
    if set(seen) <= {0, 1}:
        share = (sum(seen) + 1) / (len(seen) + 2)
        spread = share * (1 - share)
    elif len(seen) > 1:
        spread = variance(seen)
    else:
        return Estimate(total, None)
    return Estimate(total, sqrt(spread * left * (left / len(seen) + 1)))


def at_once(entries: Iterable[Entry]) -> float:
    """How many calls ran at once on average while any ran, >= 1."""
    spans = sorted(
        (end - entry.seconds, end)
        for entry in entries
        for end in [datetime.fromisoformat(entry.at).timestamp()]
    )
    busy, until = 0.0, float("-inf")
    for begin, end in spans:
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    worked = sum(end - begin for begin, end in spans)
    return max(1.0, worked / busy) if busy > 0 else 1.0
