"""Routes that visit every edge of a graph, and all edges about equally often.

Each route passes at least one of the edges visited least, so after as many walks as there are edges
none is left out, and after k times as many each was visited k times at least. At each step, of
those that still lead to such an edge, it takes the one by which it left the same node least often;
in a regular graph that is a rotor at every node, and needs no walk more than can be helped. The
fewest walks in general are a set cover, which is not sought. A route costs a look at every arc.
"""

from __future__ import annotations

from collections import Counter

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.needs import bits
from dataforge.plan.route import Route, Step, body
from dataforge.plan.space import State

__all__ = ["Cover"]


class Cover:
    """The covering routes of a graph, one after another, the same every time."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._number = {action.name: place for place, action in enumerate(graph.nodes)}
        self._open = {
            state: sum(1 << self._number[action.name] for action, _ in graph.choices(state))
            for state in graph.space.arcs
        }
        after = [0] * len(graph.nodes)
        for arcs in graph.space.arcs.values():
            for action, reached in arcs:
                after[self._number[action.name]] |= self._open[reached]
        self._after = after
        self._fresh = list(after)
        """Node -> those after it by an edge visited no more than any."""
        self._least = 0
        """Visits of the edges visited least."""
        self.visits: Counter[tuple[str, str]] = Counter()
        """How often each edge was on a route so far."""
        self._entered: Counter[str] = Counter()
        self._inside = {
            action.name: Cover(inner)
            for action in graph.nodes
            if (inner := body(action)) is not None
        }

    def route(self) -> Route:
        """The next route."""
        leading = self._leading()
        route: list[Step] = []
        state, last = self._graph.start, None
        while choices := self._graph.choices(state):
            leads = [
                arc for arc in choices if self._is_fresh(last, arc[0]) or self._leads(arc, leading)
            ]
            # Where none leads to an edge visited least, one was passed already.
            action, state = min(leads or choices, key=lambda arc: self._worn(last, arc[0]))
            inside = self._inside.get(action.name)
            route.append(Step(action, () if inside is None else inside.route()))
            self._entered[action.name] += 1
            if last is not None:
                self._visit(last, action)
            last = action
        return tuple(route)

    def _worn(self, last: Action | None, action: Action) -> tuple[int, int]:
        """How often the step was taken from here, and from anywhere."""
        edge = 0 if last is None else self.visits[last.name, action.name]
        return edge, self._entered[action.name]

    def _leading(self) -> set[State]:
        """The states from which an edge visited least lies ahead."""
        leading: set[State] = set()
        for state in self._graph.space.last_first():
            if any(self._leads(arc, leading) for arc in self._graph.choices(state)):
                leading.add(state)
        return leading

    def _leads(self, arc: tuple[Action, State], leading: set[State]) -> bool:
        action, reached = arc
        fresh = self._fresh[self._number[action.name]] & self._open[reached]
        return bool(fresh) or reached in leading

    def _is_fresh(self, last: Action | None, action: Action) -> bool:
        if last is None:
            return False
        return bool(self._fresh[self._number[last.name]] >> self._number[action.name] & 1)

    def _visit(self, last: Action, action: Action) -> None:
        self.visits[last.name, action.name] += 1
        self._fresh[self._number[last.name]] &= ~(1 << self._number[action.name])
        if not any(self._fresh):
            self._least += 1
            nodes = self._graph.nodes
            self._fresh = [
                sum(
                    1 << each
                    for each in bits(after)
                    if self.visits[nodes[place].name, nodes[each].name] == self._least
                )
                for place, after in enumerate(self._after)
            ]
