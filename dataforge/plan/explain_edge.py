"""Why one node can directly follow another, or cannot, field by field.

What is said of an edge is read off a walk that takes it; what is said where there is none, off the
walk that comes nearest, which is a heuristic as in `explain.py`. It looks at the nodes of one graph
and not inside those of them that are graphs or loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dataforge.plan.action import Action
from dataforge.plan.explain import Seen, Why, distance, lacks
from dataforge.plan.graph import Graph, Origin
from dataforge.plan.shape import Known, Shape, entails, say
from dataforge.plan.space import START, Space, State

__all__ = ["EdgeWhy", "Need", "why_edge"]


@dataclass(frozen=True, slots=True)
class Need:
    """One condition of the second node, and what is known once the first has run."""

    field: str
    want: Shape | None
    """None: absent."""
    have: Shape | None
    """None: absent."""
    written: bool
    """Whether it is only implied: the node writes the field, so it must not be there yet."""
    giver: str | None
    """The node that last wrote or dropped it on the walk; None: so it was from the start."""
    lacking: str | None
    """Who could meet it, in words; None where it is met."""

    def __str__(self) -> str:
        wanted = "must be absent" if self.want is None else f"needs {say(self.want)}"
        if self.lacking is not None:
            return self.lacking
        implied = ", for it is written here" if self.written else ""
        given = f", by {self.giver}" if self.giver else ""
        return f"{self.field}: {wanted}{implied}; is {say(self.have)}{given}"


@dataclass(frozen=True, slots=True)
class EdgeWhy:
    """Whether `after` can directly follow `before` in a graph, and why."""

    before: str
    after: str
    kind: Literal["tight", "carried"] | None
    """The edge there is; None for none."""
    reason: str
    """In a sentence."""
    walk: tuple[str, ...] = ()
    """The way to `before` that the needs are read off; none where it never runs."""
    needs: tuple[Need, ...] = ()


def why_edge(graph: Graph, before: str, after: str) -> EdgeWhy:
    """Why there is an edge between two nodes of a graph, or why not.

    Both must be among the actions that `graph` was built from, else KeyError.
    """
    assert graph.origin is not None
    actions = {action.name: action for action in graph.origin.exploration.needs.actions}
    one, other = actions[before], actions[after]
    kinds = {(edge.before, edge.after): edge.kind for edge in graph.edges()}
    kind = kinds.get((before, after))
    if kind is None:
        return _none(graph, graph.origin, one, other)
    walk = next(
        way
        for way, reached in _ways(graph.space, one)
        if any(action is other for action, _ in graph.choices(reached))
    )
    enough = {
        "tight": f"what {before} promises is all that {after} needs to be there",
        "carried": f"what {before} promises and earlier facts meet what {after} needs",
    }
    return EdgeWhy(
        before,
        after,
        kind,
        enough[kind],
        _names(walk),
        _needs(walk, other, {}, graph.preconditions),
    )


def _none(graph: Graph, origin: Origin, one: Action, other: Action) -> EdgeWhy:
    actions = origin.exploration.needs.actions
    by_name = {action.name: action for action in actions}
    why = Why(graph.name, actions, origin.source, origin.target)
    found = why.seen([other])
    seen = found or Seen(graph.space, {})
    ways = list(_ways(seen.space, one))
    if one.name == graph.target:
        return EdgeWhy(
            one.name, other.name, None, f"{one.name} is the target, the end of all walks"
        )
    if other.name == graph.source:
        return EdgeWhy(one.name, other.name, None, f"{other.name} is the source, where walks begin")
    if not ways:
        lost = graph.why_idle().get(one.name, f"  {one.name} is on no walk").strip()
        return EdgeWhy(one.name, other.name, None, lost)
    entered = graph.preconditions

    def far(way: tuple[Action, ...]) -> tuple[bool, int, float, int]:
        known = _known(way, entered)
        unmet = {
            name: (want, known.get(name))
            for name, want in other.requires.items()
            if not entails(known.get(name), want)
        }
        return (other in way, *distance(unmet), len(way))

    way, reached = min(ways, key=lambda found: far(found[0]))
    others = {name: each for name, each in sorted(by_name.items()) if each is not other}
    needs = _needs(way, other, others, entered)
    if any(need.lacking for need in needs):
        # With too many states to tell apart, a nearer walk may have been passed over.
        best = "at best" if found else "on the nearest of the walks looked at"
        reason = f"{best}, {other.name} lacks this after {one.name}"
    elif other in way:
        reason = f"{other.name} has run by then on every walk, and no node runs twice"
    elif any(action is other for action, _ in seen.space.arcs[reached]):
        reason = f"{other.name} could run there, but no walk leads on from it to {graph.target}"
    else:
        reason = f"no walk takes {one.name} and then {other.name}"
    return EdgeWhy(one.name, other.name, None, reason, _names(way), needs)


def _ways(space: Space, action: Action) -> Iterator[tuple[tuple[Action, ...], State]]:
    """For each arc of `action`, one of the shortest ways that ends with it, and where it leads."""
    ways: dict[State, tuple[Action, ...]] = {START: ()}
    queue = [START]
    for state in queue:
        for taken, reached in space.arcs[state]:
            if taken is action:
                yield (*ways[state], taken), reached
            if reached not in ways:
                ways[reached] = (*ways[state], taken)
                queue.append(reached)


def _known(way: tuple[Action, ...], entered: Mapping[str, Shape | None]) -> Known:
    known: Known = {name: shape for name, shape in entered.items() if shape is not None}
    for action in way:
        known = action.after(known)
    return known


def _needs(
    way: tuple[Action, ...],
    action: Action,
    others: Mapping[str, Action],
    entered: Mapping[str, Shape | None],
) -> tuple[Need, ...]:
    known = _known(way, entered)
    givers = {name: step.name for step in way for name in step.postconditions}
    needs = []
    for name, want in action.requires.items():
        have = known.get(name)
        met = entails(have, want)
        lacking = None if met else lacks(name, want, have, list(others.values()))
        written = want is None and name not in action.preconditions
        if lacking and written:
            lacking += f" ({action.name} would overwrite it)"
        needs.append(Need(name, want, have, written, givers.get(name), lacking))
    return tuple(needs)


def _names(way: tuple[Action, ...]) -> tuple[str, ...]:
    return tuple(action.name for action in way)
