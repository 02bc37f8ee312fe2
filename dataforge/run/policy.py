"""Walk policies: by which rule a run chooses among all the walks of a graph.

`uniform`: at each step every open one is as likely, but for the weights of nodes; walks through
narrow places are then more likely than others. `paths`: every whole walk is as likely, by exact
counting; weights do not count. `cover`: no chance; every edge in turn, as evenly as can be. What a
walk is chosen to be depends on the run seed, the seed and its place in the plan, on nothing that
happens in the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Literal, Protocol, get_args

from dataforge.plan.action import Action
from dataforge.plan.cover import Cover
from dataforge.plan.graph import Graph
from dataforge.plan.route import Route, numbered, stepwise
from dataforge.run.sampling import Draws

__all__ = ["POLICIES", "Policy", "Routes", "covering", "paths", "policy", "uniform"]

Policy = Literal["uniform", "paths", "cover"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


class Routes(Protocol):
    """Chooses the route of each walk of a run."""

    def __call__(self, draws: Draws, place: int) -> Route:
        """The route of the walk whose draws these are; `place` in the plan, never falling."""
        ...


def policy(name: Policy, graph: Graph) -> Routes:
    """The routes of a graph by that rule."""
    match name:
        case "uniform":
            return lambda draws, place: uniform(graph, draws)
        case "paths":
            return lambda draws, place: paths(graph, draws)
        case "cover":
            return covering(graph)


def uniform(graph: Graph, draws: Draws) -> Route:
    """A route of steps drawn one by one, in proportion to their weights."""
    made = count(1)

    def pick(actions: Sequence[Action]) -> int:
        return draws.pick([action.weight for action in actions], "choice", next(made))

    return stepwise(graph, pick)


def paths(graph: Graph, draws: Draws) -> Route:
    """A route drawn so that each whole walk is exactly as likely as any other."""
    return numbered(graph, draws.below(graph.count_walks(), "path"))


def covering(graph: Graph) -> Routes:
    """The covering routes, each planned walk taking the next."""
    cover, made = Cover(graph), 0
    route: Route = ()

    def take(draws: Draws, place: int) -> Route:
        nonlocal made, route
        while made <= place:
            route = cover.route()
            made += 1
        return route

    return take
