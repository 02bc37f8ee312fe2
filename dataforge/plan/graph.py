"""Graphs: nodes between one source and one target, with edges worked out, never written.

An edge A -> B is there when, on some walk, what is known once A has run entails what B needs. Every
arc kept leads on to the target, so a walk that takes any of them never meets a dead end; a graph of
which that cannot be promised does not build. A graph is an action itself, and so a node of a larger
graph, run on a fresh record of its own. It holds no policy for choosing among arcs.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Literal, Self

from dataforge.errors import DuplicateName, GraphError, NodeOnNoWalk, UnreachableTarget
from dataforge.plan.action import Action, digest_of, merged_roles
from dataforge.plan.explain import why_idle, why_unreachable
from dataforge.plan.shape import Conditions, Known, Shape, missing
from dataforge.plan.states import START, Arc, Space, State, explore, line

__all__ = ["Edge", "Graph"]


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """That `after` can directly follow `before` on a walk."""

    before: str
    after: str
    kind: Literal["tight", "carried"]
    """`tight`: what `before` promises is enough; `carried`: earlier facts are needed too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph(Action):
    """A set of walks from one source to one target."""

    source: str
    """Name of the first node of every walk."""
    target: str
    """Name of the last node of every walk."""
    nodes: tuple[Action, ...]
    """The nodes on some walk, by name."""
    idle: tuple[tuple[Action, str], ...] = ()
    """Nodes that matched a pattern but are on no walk, and the nearest miss of each."""
    space: Space = field(repr=False)
    """States from which the target can be reached, and the arcs between them."""

    @classmethod
    def build(
        cls,
        name: str,
        actions: Sequence[Action],
        source: str,
        target: str,
        *,
        named: Collection[str] = (),
        max_states: int = 20_000,
        weight: float = 1.0,
        tags: Collection[str] = (),
    ) -> Self:
        """The graph of all walks from `source` to `target` through `actions`.

        Of the `actions`, those in `named` must lie on a walk. Raises a `GraphError` that says what
        is wrong and who could put it right.
        """
        by_name = _by_name(name, actions)
        first = _found(name, "source", source, by_name)
        last = _found(name, "target", target, by_name)
        for action in actions:
            if isinstance(action, Graph) and name in set(_graphs(action)):
                raise GraphError(f"graph {name!r} holds itself, in node {action.name!r}")
        space = explore(name, actions, first, last, max_states)
        if not space.ends:
            reason = why_unreachable(space, last, actions)
            raise UnreachableTarget(
                f"graph {name!r}: no walk from {source!r} reaches {target!r}\n{reason}"
            )
        live = space.live()
        taken = live.taken()
        idle = [by_name[each] for each in sorted(by_name.keys() - taken.keys())]
        reasons = tuple((action, why_idle(space, action, last, actions)) for action in idle)
        lost = [reason for action, reason in reasons if action.name in named]
        if lost:
            raise NodeOnNoWalk(
                f"graph {name!r}: on no walk from {source!r} to {target!r}:\n" + "\n".join(lost)
            )
        return cls._over(name, live, first.preconditions, reasons, weight, frozenset(tags))

    @classmethod
    def line(cls, name: str, steps: Sequence[Action], preconditions: Conditions) -> Self:
        """The graph with a single walk, the steps in order; `preconditions` must suffice for it."""
        return cls._over(name, line(steps, preconditions), preconditions)

    @classmethod
    def _over(
        cls,
        name: str,
        space: Space,
        preconditions: Conditions,
        idle: tuple[tuple[Action, str], ...] = (),
        weight: float = 1.0,
        tags: frozenset[str] = frozenset(),
    ) -> Self:
        nodes = tuple(space.taken().values())
        ends = space.ends
        last = next(a for arcs in space.arcs.values() for a, state in arcs if state in ends)
        return cls(
            name=name,
            preconditions=preconditions,
            postconditions=MappingProxyType(_promised(space, preconditions)),
            roles=merged_roles(name, nodes),
            weight=weight,
            tags=tags,
            source=space.arcs[START][0][0].name,
            target=last.name,
            nodes=nodes,
            idle=idle,
            space=space,
        )

    @property
    def inner(self) -> tuple[Action, ...]:
        """The nodes on some walk."""
        return self.nodes

    @property
    def start(self) -> State:
        """Where every walk begins; its only choice is the source."""
        return START

    def choices(self, state: State) -> tuple[Arc, ...]:
        """The steps from which the target can be reached, by name; none once it has run."""
        return self.space.arcs[state]

    def known(self, state: State) -> Known:
        """What is known at a state."""
        return self.space.known[state]

    def count_walks(self, state: State = START) -> int:
        """How many walks there are from a state on, exactly."""
        return self._counts[state]

    def shortest(self) -> int:
        """Steps of the shortest walk, source and target included."""
        return self._lengths[START][0]

    def longest(self) -> int:
        """Steps of the longest walk, source and target included."""
        return self._lengths[START][1]

    def walks(self, limit: int) -> tuple[tuple[str, ...], ...]:
        """The first `limit` walks in alphabetical order, as names of nodes."""
        found: list[tuple[str, ...]] = []
        waiting: list[tuple[State, tuple[str, ...]]] = [(START, ())]
        while waiting and len(found) < limit:
            state, path = waiting.pop()
            arcs = self.space.arcs[state]
            if not arcs:
                found.append(path)
            waiting += [(reached, (*path, action.name)) for action, reached in reversed(arcs)]
        return tuple(found)

    def edges(self) -> tuple[Edge, ...]:
        """Which node can directly follow which, sorted."""
        return self._edges

    @cached_property
    def _counts(self) -> dict[State, int]:
        counts: dict[State, int] = {}
        for state in self.space.last_first():
            arcs = self.space.arcs[state]
            counts[state] = sum(counts[reached] for _, reached in arcs) if arcs else 1
        return counts

    @cached_property
    def _lengths(self) -> dict[State, tuple[int, int]]:
        lengths: dict[State, tuple[int, int]] = {}
        for state in self.space.last_first():
            after = [lengths[reached] for _, reached in self.space.arcs[state]]
            shortest = min((low for low, _ in after), default=-1)
            longest = max((high for _, high in after), default=-1)
            lengths[state] = (shortest + 1, longest + 1)
        return lengths

    @cached_property
    def _edges(self) -> tuple[Edge, ...]:
        pairs: dict[tuple[str, str], tuple[Action, Action]] = {}
        for arcs in self.space.arcs.values():
            for before, reached in arcs:
                for after, _ in self.space.arcs[reached]:
                    pairs[before.name, after.name] = (before, after)
        return tuple(
            Edge(before.name, after.name, _kind(before, after))
            for _, (before, after) in sorted(pairs.items())
        )

    @cached_property
    def digest(self) -> str:
        """Hash over the nodes on some walk, source and target."""
        insides = [f"{action.name} {action.digest}" for action in self.nodes]
        return digest_of("graph", self.name, self.source, self.target, str(self.weight), *insides)


def _by_name(name: str, actions: Sequence[Action]) -> dict[str, Action]:
    doubled = sorted(each for each, count in Counter(a.name for a in actions).items() if count > 1)
    if doubled:
        raise DuplicateName(
            f"graph {name!r}: more than one node is named {', '.join(map(repr, doubled))}; "
            "rename one of them, or name the library it is from"
        )
    return {action.name: action for action in actions}


def _found(graph: str, what: str, name: str, by_name: dict[str, Action]) -> Action:
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name, n=3)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise GraphError(f"graph {graph!r}: its {what}, {name!r}, is not among its nodes{hint}")


def _graphs(action: Action) -> Iterator[str]:
    """The names of all graphs at or inside an action."""
    if isinstance(action, Graph):
        yield action.name
    for step in action.inner:
        yield from _graphs(step)


def _promised(space: Space, preconditions: Conditions) -> dict[str, Shape | None]:
    """What holds after every walk: what is written and known at all ends, and what is gone at all.

    A field that only some walks leave behind is no promise. One that its writer declares optional
    stays optional.
    """
    ends = [space.known[state] for state in sorted(space.ends)]
    actions = space.taken().values()
    touched = sorted({name for action in actions for name in action.postconditions})
    promised: dict[str, Shape | None] = {}
    for name in touched:
        shapes = {known.get(name) for known in ends}
        present = [shape for shape in shapes if shape is not None]
        if not present and preconditions.get(name) is not None:
            promised[name] = None
        elif len(present) == len(shapes):
            promised[name] = reduce(Shape.join, present)
    return promised


def _kind(before: Action, after: Action) -> Literal["tight", "carried"]:
    """Whether what `before` promises is all that `after` needs; a gate promises what it asks."""
    promised = before.postconditions or before.preconditions
    alone = {name: shape for name, shape in promised.items() if shape is not None}
    return "carried" if missing(alone, after.preconditions) else "tight"
