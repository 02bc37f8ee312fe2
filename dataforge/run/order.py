"""What a run is to make: a graph, who plays its roles, seeds, and how far to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataforge.errors import UsageError
from dataforge.plan.graph import Graph
from dataforge.run.budget import NO_BUDGET, Budget
from dataforge.run.policy import Policy
from dataforge.run.prices import NO_PRICES, Price, Prices, require_prices
from dataforge.run.roles import Role, check_roles
from dataforge.run.seed import SeedStore

__all__ = ["Order", "check_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be made, and how."""

    graph: Graph
    """Promises `messages` at its target."""
    players: Mapping[str, Role]
    """Role -> who plays it, for every role of the graph."""
    seeds: SeedStore
    walks: int
    """How many walks in all, at most; spread over the seeds by `run_seed`."""
    accept: int | None = None
    """Make no more walks than it takes to have so many accepted; None: all of them."""
    run_seed: int = 0
    policy: Policy = "uniform"
    """By which rule walks are chosen."""
    budget: Budget = NO_BUDGET
    """What this sitting may spend."""
    prices: Prices = NO_PRICES
    """What calls cost, for the accounts and a budget of money."""
    concurrency: int = 8
    """Most walks in flight at once; changes nothing of what is made."""
    allow_shared_weights: bool = False
    """Let a judge judge its own weights' output, on the record."""
    accept_changes: bool = False
    """Go on in a directory begun with other inputs, walking again what they change."""
    judge_card: str = ""
    """What is known of the judge, for the report."""
    skipped_seeds: Sequence[str] = ()
    """Lines that could not be used, for the report; the first of them where they are many."""
    skipped_count: int = 0
    """How many there were in all."""

    @property
    def rates(self) -> dict[str, Price | None]:
        """Role -> price of its model; None where it is not known."""
        return {role: self.prices.of(player.spec) for role, player in self.players.items()}


def check_order(order: Order) -> None:
    """Raises UsageError for an order that cannot be made."""
    check_roles(order.graph.roles, order.players)
    promised = order.graph.postconditions.get("messages")
    if promised is None or promised.maybe:
        raise UsageError(
            f"graph {order.graph.name} does not promise `messages` at its target, and a run makes "
            "samples of them: end it with a node that writes them, such as sample/chat"
        )
    if not len(order.seeds):
        raise UsageError(f"{order.seeds.path}: no seed to walk from")
    if order.budget.usd is not None:
        specs = {role: player.spec for role, player in order.players.items()}
        require_prices(specs, order.prices)
    if order.walks < 1 or order.concurrency < 1:
        raise UsageError("a run needs at least 1 walk and a concurrency of at least 1")
