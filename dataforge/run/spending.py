"""What a run's calls took, over its whole life: tokens, money and time, from its journals.

A call that was made under changed inputs, or whose walk was lost, was paid for and counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dataforge.models.base import Finish
from dataforge.run.latency import Latency
from dataforge.run.log import parse, read_lines
from dataforge.run.logs import JOURNAL, part_names
from dataforge.run.prices import Prices

__all__ = ["Total", "Usage", "rolled_up", "total", "usage"]


class Usage(BaseModel):
    """What one node asked of one role's model, over the run's whole life."""

    model_config = ConfigDict(frozen=True)

    node: str
    role: str
    model: str
    """Identity of the weights that replied."""
    calls: int
    cut: int
    """Replies cut at their token limit."""
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    """Of those read, found in the endpoint's cache."""
    tokens_reasoning: int
    """Of those written, spent on reasoning."""
    usd: float | None
    """None where the model's price is not known."""
    seconds: float
    """Sum of its calls' times, which overlap."""
    p50: float
    """Seconds that half of its calls took at most, give or take 1 %."""
    p95: float


class _Spent(BaseModel):
    model_config = ConfigDict(extra="ignore")

    class Reply(BaseModel):
        finish: Finish
        tokens_in: int
        tokens_out: int
        tokens_cached: int = 0
        tokens_reasoning: int = 0

    kind: str
    node: str
    role: str
    weights: str
    seconds: float
    reply: Reply | None = None


@dataclass(slots=True)
class _Sum:
    calls: int = 0
    cut: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    seconds: float = 0.0
    latency: Latency = field(default_factory=Latency)

    def add(self, reply: _Spent.Reply, seconds: float) -> None:
        self.calls += 1
        self.cut += reply.finish == "length"
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        self.tokens_cached += reply.tokens_cached
        self.tokens_reasoning += reply.tokens_reasoning
        self.seconds += seconds
        self.latency.see(seconds)


def usage(folder: Path, specs: Mapping[str, str], prices: Prices) -> tuple[Usage, ...]:
    """What each node asked of each role's model, by node, role and model.

    `specs`: role -> the model that plays it, by which its price is found.
    """
    sums: dict[tuple[str, str, str], _Sum] = {}
    for spent in _spent(folder):
        if spent.reply is not None:
            key = (spent.node, spent.role, spent.weights)
            sums.setdefault(key, _Sum()).add(spent.reply, spent.seconds)
    found = []
    for (node, role, model), summed in sorted(sums.items()):
        price = prices.of(specs[role]) if role in specs else None
        found.append(
            Usage(
                node=node,
                role=role,
                model=model,
                calls=summed.calls,
                cut=summed.cut,
                tokens_in=summed.tokens_in,
                tokens_out=summed.tokens_out,
                tokens_cached=summed.tokens_cached,
                tokens_reasoning=summed.tokens_reasoning,
                usd=None if price is None else price.of(summed),
                seconds=summed.seconds,
                p50=summed.latency.percentile(0.5),
                p95=summed.latency.percentile(0.95),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over usages."""

    calls: int
    cut: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    tokens_reasoning: int
    usd: float
    """Of those whose price is known."""
    unpriced: int
    """Calls whose price is not known."""


def total(usages: Iterable[Usage]) -> Total:
    """The sums over some usages."""
    usages = list(usages)
    return Total(
        calls=sum(each.calls for each in usages),
        cut=sum(each.cut for each in usages),
        tokens_in=sum(each.tokens_in for each in usages),
        tokens_out=sum(each.tokens_out for each in usages),
        tokens_cached=sum(each.tokens_cached for each in usages),
        tokens_reasoning=sum(each.tokens_reasoning for each in usages),
        usd=sum(each.usd or 0.0 for each in usages),
        unpriced=sum(each.calls for each in usages if each.usd is None),
    )


def rolled_up(usages: Iterable[Usage], by: Callable[[Usage], str]) -> dict[str, Total]:
    """Totals by node, role or model, in the order of their names."""
    groups: dict[str, list[Usage]] = {}
    for each in usages:
        groups.setdefault(by(each), []).append(each)
    return {name: total(group) for name, group in sorted(groups.items())}


def _spent(folder: Path) -> Iterator[_Spent]:
    for part in part_names(folder):
        journal = folder / part / JOURNAL
        for offset, line in read_lines(journal) if journal.exists() else ():
            yield parse(_Spent, line, str(journal), offset)
