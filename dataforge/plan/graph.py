"""Graphs: nodes between one source and one target, with edges worked out, never written.

An edge A -> B is there when, on some walk, what is known once A has run entails what B needs. Every
arc kept leads on to the target, so a walk that takes any of them never meets a dead end; a graph of
which that cannot be promised does not build. A graph is an action itself, and so a node of a larger
graph, run on a fresh record of its own. It holds no policy for choosing among arcs.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import accumulate
from typing import Literal, Self

from dataforge.errors import DuplicateName, GraphError, NodeOnNoWalk, UnreachableTarget
from dataforge.plan.action import Action, digest_of, merged_roles, names_of
from dataforge.plan.explain import Why
from dataforge.plan.facts import Facts
from dataforge.plan.needs import Needs, bits
from dataforge.plan.shape import Conditions, Known
from dataforge.plan.space import START, Arc, Space, State, entry, line
from dataforge.plan.states import Exploration, explore

__all__ = ["MAX_STATES", "Edge", "Graph"]

MAX_STATES = 20_000
"""How many states a graph may have where nothing else is said; beyond, nesting is due."""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """That `after` can directly follow `before` on a walk."""

    before: str
    after: str
    kind: Literal["tight", "carried"]
    """`tight`: what `before` promises is enough; `carried`: earlier facts are needed too."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a graph was built from, so that it can be built with one node more."""

    exploration: Exploration
    source: Action
    target: Action
    named: frozenset[str]
    max_states: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph(Action):
    """A set of walks from one source to one target."""

    source: str
    """Name of the first node of every walk."""
    target: str
    """Name of the last node of every walk."""
    nodes: tuple[Action, ...]
    """The nodes on some walk, by name."""
    idle: tuple[Action, ...] = ()
    """The nodes that are on no walk, by name."""
    space: Space = field(repr=False)
    """States from which the target can be reached, and the arcs between them."""
    origin: Origin | None = field(default=None, repr=False)
    """What it was built from; None for a line of steps."""

    @classmethod
    def build(
        cls,
        name: str,
        actions: Sequence[Action],
        source: str,
        target: str,
        *,
        named: Collection[str] = (),
        max_states: int = MAX_STATES,
        weight: float = 1.0,
        tags: Collection[str] = (),
    ) -> Self:
        """The graph of all walks from `source` to `target` through `actions`.

        Of the `actions`, those in `named` must lie on a walk. Raises a `GraphError` that says what
        is wrong and who could put it right.
        """
        must, own_tags = names_of(f"{name}: named", named), names_of(f"{name}: tags", tags)
        by_name = _by_name(name, actions)
        first = _found(name, "source", source, by_name)
        last = _found(name, "target", target, by_name)
        ordered = [by_name[each] for each in sorted(by_name)]
        _refuse_itself(name, ordered)
        found = explore(name, ordered, first, last, max_states)
        origin = Origin(found, first, last, must, max_states)
        return cls._built(name, origin, weight, own_tags)

    def with_node(self, action: Action, *, named: bool = False) -> Self:
        """The graph that a build with `action` among the actions gives, sooner.

        States from which the new action cannot run are taken over as they are, and no two shapes
        are compared again. `named`: it must lie on a walk. Raises a `GraphError` as `build` does.
        """
        if self.origin is None:
            raise GraphError(f"graph {self.name!r} is a line of steps; no node can join it")
        origin = self.origin
        actions = [*origin.exploration.needs.actions, action]
        _by_name(self.name, actions)
        _refuse_itself(self.name, [action])
        found = explore(
            self.name,
            actions,
            origin.source,
            origin.target,
            origin.max_states,
            before=origin.exploration,
        )
        must = origin.named | {action.name} if named else origin.named
        grown = replace(origin, exploration=found, named=must)
        return self._built(self.name, grown, self.weight, self.tags)

    @classmethod
    def line(cls, name: str, steps: Sequence[Action], preconditions: Conditions) -> Self:
        """The graph with a single walk, the steps in order; `preconditions` must suffice for it."""
        return cls._over(name, line(steps), preconditions)

    @classmethod
    def _built(cls, name: str, origin: Origin, weight: float, tags: frozenset[str]) -> Self:
        source, target = origin.source, origin.target
        actions = origin.exploration.needs.actions
        why = Why(name, actions, source, target)
        if origin.exploration.space.end is None:
            raise UnreachableTarget(
                f"graph {name!r}: no walk from {source.name!r} reaches {target.name!r}\n"
                f"{why.unreachable()}"
            )
        live = origin.exploration.space.live()
        taken = live.taken()
        idle = tuple(
            sorted((a for a in actions if a.name not in taken), key=lambda action: action.name)
        )
        lost = [action for action in idle if action.name in origin.named]
        if lost:
            raise NodeOnNoWalk(
                f"graph {name!r}: on no walk from {source.name!r} to {target.name!r}:\n"
                + "\n".join(why.idle(lost).values())
            )
        return cls._over(name, live, source.preconditions, idle, weight, tags, origin)

    @classmethod
    def _over(
        cls,
        name: str,
        space: Space,
        preconditions: Conditions,
        idle: tuple[Action, ...] = (),
        weight: float = 1.0,
        tags: frozenset[str] = frozenset(),
        origin: Origin | None = None,
    ) -> Self:
        assert space.end is not None
        nodes = tuple(space.taken().values())
        facts = Facts(space, preconditions)
        last = next(a for arcs in space.arcs.values() for a, state in arcs if state == space.end)
        made = cls(
            name=name,
            preconditions=preconditions,
            postconditions=facts.promised(space.end),
            roles=merged_roles(name, nodes),
            weight=weight,
            tags=tags,
            source=space.arcs[START][0][0].name,
            target=last.name,
            nodes=nodes,
            idle=idle,
            space=space,
            origin=origin,
        )
        # What `facts` would be computed as when first asked for; it is at hand.
        made.__dict__["facts"] = facts
        return made

    @property
    def inner(self) -> tuple[Action, ...]:
        """The nodes on some walk."""
        return self.nodes

    @property
    def ways(self) -> int:
        """How many walks there are."""
        return self.count_walks()

    @property
    def start(self) -> State:
        """Where every walk begins; its only choice is the source."""
        return START

    def choices(self, state: State) -> tuple[Arc, ...]:
        """The steps from which the target can be reached, by name; none once it has run."""
        return self.space.arcs[state]

    @cached_property
    def facts(self) -> Facts:
        """What may be known at each state."""
        return Facts(self.space, self.preconditions)

    def known(self, state: State) -> Known:
        """What is known at a state; what only some walks bring there may be absent."""
        return self.facts.known(state)

    def count_walks(self, state: State = START) -> int:
        """How many walks there are from a state on, exactly.

        The ways through a nested graph, or through the body of a loop, count each.
        """
        return self._counts[state]

    def walks_before(self, state: State) -> Sequence[int]:
        """For each choice at a state, how many of the walks from there take an earlier one."""
        before = self._before.get(state)
        if before is None:
            counted = (
                action.ways * self._counts[reached] for action, reached in self.space.arcs[state]
            )
            before = self._before[state] = [0, *accumulate(counted)][:-1]
        return before

    @cached_property
    def _before(self) -> dict[State, list[int]]:
        return {}

    def shortest(self) -> int:
        """Steps of the shortest walk, source and target included; a nested graph is one."""
        return self._lengths[START][0]

    def longest(self) -> int:
        """Steps of the longest walk, source and target included; a nested graph is one."""
        return self._lengths[START][1]

    def walks(self, limit: int) -> tuple[tuple[str, ...], ...]:
        """The first `limit` walks, shortest first and then alphabetical, as names of nodes."""
        found: list[tuple[str, ...]] = []
        waiting: list[tuple[int, tuple[str, ...], State]] = [(self.shortest(), (), START)]
        while waiting and len(found) < limit:
            _, path, state = heappop(waiting)
            if state == self.space.end:
                found.append(path)
            for action, reached in self.space.arcs[state]:
                length = len(path) + 1 + self._lengths[reached][0]
                heappush(waiting, (length, (*path, action.name), reached))
        return tuple(found)

    def edges(self) -> tuple[Edge, ...]:
        """Which node can directly follow which, sorted."""
        return self._edges

    def why_idle(self) -> Mapping[str, str]:
        """Node on no walk -> what it lacks at best, and who could give it."""
        return self._why_idle

    @cached_property
    def _why_idle(self) -> Mapping[str, str]:
        if self.origin is None:
            return {}
        made = self.origin
        why = Why(self.name, made.exploration.needs.actions, made.source, made.target)
        return why.idle(self.idle)

    @cached_property
    def _counts(self) -> dict[State, int]:
        counts: dict[State, int] = {}
        ways = {action.name: action.ways for action in self.nodes}
        for state in self.space.last_first():
            arcs = self.space.arcs[state]
            counts[state] = sum(ways[action.name] * counts[reached] for action, reached in arcs)
            if not arcs:
                counts[state] = 1
        return counts

    @cached_property
    def _lengths(self) -> dict[State, tuple[int, int]]:
        lengths: dict[State, tuple[int, int]] = {}
        for state in self.space.last_first():
            after = {lengths[reached] for _, reached in self.space.arcs[state]}
            shortest = min((low for low, _ in after), default=-1)
            longest = max((high for _, high in after), default=-1)
            lengths[state] = (shortest + 1, longest + 1)
        return lengths

    @cached_property
    def _edges(self) -> tuple[Edge, ...]:
        number = {action.name: place for place, action in enumerate(self.nodes)}
        follow = {
            state: sum(1 << number[action.name] for action, _ in arcs)
            for state, arcs in self.space.arcs.items()
        }
        after = [0] * len(self.nodes)
        for arcs in self.space.arcs.values():
            for action, reached in arcs:
                after[number[action.name]] |= follow[reached]
        tight = _Tight(self.nodes)
        return tuple(
            Edge(before.name, self.nodes[each].name, tight.kind(place, each))
            for place, before in enumerate(self.nodes)
            for each in bits(after[place])
        )

    @cached_property
    def digest(self) -> str:
        """Hash over the nodes on some walk, source and target."""
        insides = [f"{action.name} {action.digest}" for action in self.nodes]
        return digest_of("graph", self.name, self.source, self.target, str(self.weight), *insides)


class _Tight:
    """Whether what a node promises is all that another needs; a gate promises what it asks."""

    def __init__(self, nodes: Sequence[Action]) -> None:
        needs = Needs(nodes)
        self.asks = [
            sum(1 << needs.bit[each] for each in node.preconditions.items()) for node in nodes
        ]
        self.alone = [needs.met(entry(node.postconditions or node.preconditions)) for node in nodes]

    def kind(self, before: int, after: int) -> Literal["tight", "carried"]:
        """The kind of the edge between two nodes, by number."""
        return "carried" if self.asks[after] & ~self.alone[before] else "tight"


def _refuse_itself(name: str, actions: Sequence[Action]) -> None:
    for action in actions:
        if name in set(_graphs(action)):
            raise GraphError(f"graph {name!r} holds itself, in node {action.name!r}")


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
