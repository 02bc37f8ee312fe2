"""Why something is not on any walk, in sentences: what is lacking at best, and who could give it.

The nearest miss is a heuristic (fewest conditions unmet, then the smallest gap); what it says of
the state it picks is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from dataforge.plan.action import Action
from dataforge.plan.bases import below
from dataforge.plan.shape import Shape, entails, missing, say
from dataforge.plan.states import START, Space, State

__all__ = ["lacks", "nearest", "why_idle", "why_unreachable"]

Lack = tuple[Shape | None, Shape | None]
"""What is wanted of a field, and what is known of it; None: absent."""


def why_unreachable(space: Space, target: Action, actions: Sequence[Action]) -> str:
    """Why no walk reaches `target`, followed back through the nodes that could have helped."""
    trail = _trail(space, list(space.arcs), target, actions)
    lines = (
        f"  {action.name} never runs; what it lacks at best:\n{_listed(action, unmet, actions)}"
        for action, unmet in trail
    )
    return "\n".join(lines)


def why_idle(space: Space, action: Action, target: Action, actions: Sequence[Action]) -> str:
    """Why `action` is on no walk: what it lacks at best, or what would have to run after it."""
    after = [reached for arcs in space.arcs.values() for taken, reached in arcs if taken is action]
    if not after:
        unmet = nearest(space, action)
        return (
            f"  {action.name} never runs; what it lacks at best:\n{_listed(action, unmet, actions)}"
        )
    stuck, unmet = _trail(space, _following(space, after), target, actions)[-1]
    return (
        f"  {action.name} can run, but no walk leads on from it; nearest to going on is "
        f"{stuck.name}, which lacks:\n{_listed(stuck, unmet, actions)}"
    )


def _trail(
    space: Space, states: Sequence[State], target: Action, actions: Sequence[Action]
) -> list[tuple[Action, Mapping[str, Lack]]]:
    """What `target` lacks at best in `states`, then what the nearest node that could help lacks.

    And so on, up to one that no node could help.
    """
    taken = {action for state in states for action, _ in space.arcs[state]}
    trail: dict[Action, Mapping[str, Lack]] = {}
    action = target
    while action not in trail:
        unmet = trail[action] = nearest(space, action, states)
        givers = [_givers(field, want, actions) for field, (want, _) in unmet.items()]
        helpers = {
            giver: nearest(space, giver, states)
            for each in givers
            for giver in each
            if giver not in taken and giver not in trail
        }
        helpers = {a: lacking for a, lacking in helpers.items() if not _barred(lacking, actions)}
        if helpers and all(givers):
            action = min(helpers, key=lambda helper: (*_distance(helpers[helper]), helper.name))
    return list(trail.items())


def _barred(unmet: Mapping[str, Lack], actions: Sequence[Action]) -> bool:
    """Whether something that must be absent is there to stay."""
    unwanted = [field for field, (want, _) in unmet.items() if want is None]
    return any(not _givers(field, None, actions) for field in unwanted)


def nearest(
    space: Space, action: Action, states: Iterable[State] | None = None
) -> Mapping[str, Lack]:
    """What `action` lacks in the state that comes nearest to letting it run."""
    among = space.arcs if states is None else states
    begun = [state for state in among if state != START]
    unended = [state for state in begun if state not in space.ends] or begun
    lacking = [missing(space.known[state], action.requires) for state in unended]
    return min(lacking, key=_distance, default={})


def lacks(field: str, want: Shape | None, have: Shape | None, actions: Sequence[Action]) -> str:
    """One unmet condition, and who could meet it."""
    givers = _some([giver.name for giver in _givers(field, want, actions)])
    if want is None:
        by = f"dropped by {givers}" if givers else "no node drops it"
        return f"{field}: must be absent, but is {say(have)}; {by}"
    by = f"given by {givers}" if givers else _closest(field, want, actions)
    return f"{field}: needs {say(want)}, has {'nothing' if have is None else say(have)}; {by}"


def _listed(action: Action, unmet: Mapping[str, Lack], actions: Sequence[Action]) -> str:
    """What an action lacks, one field a line."""
    others = [other for other in actions if other is not action]
    lines = []
    for field, (want, have) in unmet.items():
        implied = want is None and field not in action.preconditions
        why = f" ({action.name} would overwrite it)" if implied else ""
        lines.append(f"    {lacks(field, want, have, others)}{why}")
    return "\n".join(lines)


def _givers(field: str, want: Shape | None, actions: Sequence[Action]) -> list[Action]:
    """The actions whose promise of `field` is enough by itself."""
    return [
        action
        for action in actions
        if field in action.postconditions and entails(action.postconditions[field], want)
    ]


def _closest(field: str, want: Shape, actions: Sequence[Action]) -> str:
    promises = [
        (_gap(want, shape), action.name, shape)
        for action in actions
        if (shape := action.postconditions.get(field)) is not None
    ]
    if not promises:
        return "no node gives it"
    _, name, shape = min(promises, key=lambda promise: promise[:2])
    return f"no node gives that; the closest, {name}, promises {shape.say()}"


def _following(space: Space, states: Iterable[State]) -> list[State]:
    """`states` and all that can be reached from them."""
    seen: dict[State, None] = dict.fromkeys(states)
    waiting = list(seen)
    while waiting:
        for _, reached in space.arcs[waiting.pop()]:
            if reached not in seen:
                seen[reached] = None
                waiting.append(reached)
    return list(seen)


def _distance(unmet: Mapping[str, Lack]) -> tuple[int, float]:
    return len(unmet), sum(_gap(want, have) for want, have in unmet.values())


def _gap(want: Shape | None, have: Shape | None) -> float:
    """How far off what is known is, from 0 (met) to 4 (absent)."""
    if entails(have, want):
        return 0.0
    if want is None:
        return 1.0
    if have is None:
        return 4.0
    if not below(have.base, want.base):
        return 3.0
    if want.values is not None or have.values is not None:
        return 2.0
    short = (
        max(want.min_len - have.min_len, 0)
        + _over(have.max_len, want.max_len)
        + _over(want.low, have.low)
        + _over(have.high, want.high)
    )
    return short / (1 + short) if short < inf else 1.0


def _over(more: float, less: float) -> float:
    return more - less if more > less else 0.0


def _some(names: Sequence[str]) -> str:
    """A few of the names, and how many more there are."""
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown
