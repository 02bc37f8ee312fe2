"""Routes: one walk through a graph, chosen whole before it is taken.

A choice among open steps depends on nothing a node makes, so all of a walk's choices can be made at
once, those inside nested graphs and loops too, in the order in which the walk meets them. A graph
nested in another and the same steps in one flat graph therefore ask for the same choices. By what
rule to choose is not decided here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import Loop

__all__ = ["Route", "Step", "body", "names", "numbered", "stepwise"]


class Step(NamedTuple):
    """One step of a route."""

    action: Action
    inside: Route
    """The way through it; empty for a node."""


Route = tuple[Step, ...]
"""The steps of a walk, from source to target."""

Pick = Callable[[Sequence[Action]], int]
"""Of two or more open steps, in order of name, the place of the one to take."""


def body(action: Action) -> Graph | None:
    """The graph inside a nested graph or a loop; None for a node."""
    if isinstance(action, Loop):
        return action.body
    return action if isinstance(action, Graph) else None


def stepwise(graph: Graph, pick: Pick) -> Route:
    """The route on which each step is picked among those open there."""
    route: list[Step] = []
    state = graph.start
    while choices := graph.choices(state):
        place = pick([action for action, _ in choices]) if len(choices) > 1 else 0
        action, state = choices[place]
        inner = body(action)
        route.append(Step(action, () if inner is None else stepwise(inner, pick)))
    return tuple(route)


def numbered(graph: Graph, number: int) -> Route:
    """The route of that number, from 0 to `graph.count_walks()` - 1, in order of names.

    Every number is another walk, so a number drawn evenly is a walk drawn evenly. Raises
    IndexError for any other number.
    """
    if not 0 <= number < graph.count_walks():
        raise IndexError(f"walk {number} of {graph.count_walks()}")
    route: list[Step] = []
    state = graph.start
    while choices := graph.choices(state):
        before = graph.walks_before(state)
        place = bisect_right(before, number) - 1
        number -= before[place]
        action, state = choices[place]
        inner = body(action)
        if inner is None:
            route.append(Step(action, ()))
        else:
            way, number = divmod(number, graph.count_walks(state))
            route.append(Step(action, numbered(inner, way)))
    return tuple(route)


def names(route: Route) -> Iterator[str]:
    """The nodes of a route in the order they run, those inside graphs and loops in their place."""
    for step in route:
        if step.inside:
            yield from names(step.inside)
        else:
            yield step.action.name
