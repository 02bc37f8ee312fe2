"""Why something is not on any walk, in sentences: what is lacking at best, and who could give it.

States are explored anew for it, keeping what the nodes in question look at, which a graph that only
plans does not. The nearest miss is a heuristic (fewest conditions unmet, then the smallest gap);
what is said of it is exact, for it is a walk that can be taken. Where the states would be too many
for an answer at once, each need is looked at alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as stored
from math import inf

from dataforge.errors import TooManyStates
from dataforge.plan.action import Action
from dataforge.plan.bases import below
from dataforge.plan.shape import Known, Shape, entails, missing, say
from dataforge.plan.space import START, Space, State, entry, first_known
from dataforge.plan.states import explore

__all__ = ["Seen", "Why", "distance", "lacks", "nearest"]

Lack = tuple[Shape | None, Shape | None]
"""What is wanted of a field, and what is known of it; None: absent."""


MOST = 2_000
"""How many states are explored for an explanation."""


@dataclass(frozen=True, slots=True)
class Seen:
    """States, dead ends among them, and what is known at each on a walk to it."""

    space: Space
    known: Mapping[State, Known]
    lacking: dict[tuple[State, str], Mapping[str, Lack]] = stored(default_factory=dict)
    """State, action -> what the action lacks there, as far as it was asked."""
    stuck: dict[frozenset[State], tuple[Action, Mapping[str, Lack]]] = stored(default_factory=dict)
    """States -> the action nearest to going on from there, as far as it was asked."""

    def lacks(self, state: State, action: Action) -> Mapping[str, Lack]:
        """What an action lacks at a state."""
        found = self.lacking.get((state, action.name))
        if found is None:
            found = self.lacking[state, action.name] = missing(self.known[state], action.requires)
        return found


class Why:
    """Explains what is on no walk of the graph of some actions."""

    def __init__(
        self,
        graph: str,
        actions: Sequence[Action],
        source: Action,
        target: Action,
        *,
        goal: bool = False,
    ) -> None:
        """`goal`: the target is no node but stands for what is wanted, and is spoken of so."""
        self._goal = target if goal else None
        # By name, so that what is said does not depend on the order the actions came in.
        self._graph, self._actions = graph, sorted(actions, key=lambda action: action.name)
        self._source, self._target = source, target

    def unreachable(self) -> str:
        """Why no walk reaches the target, followed back through nodes that could have helped."""
        seen = self.seen(self._actions) or self.seen([self._target])
        if seen is None:
            return self._alone(self._target)
        trail = self._trail(seen, list(seen.space.arcs), self._target)
        lines = (
            f"  {self._never(action)}; what it lacks at best:\n{self._listed(action, unmet)}"
            for action, unmet in trail
        )
        return "\n".join(lines)

    def idle(self, actions: Sequence[Action]) -> dict[str, str]:
        """Action -> what it lacks at best, or what would have to run after it."""
        if not actions:
            return {}
        seen = self.seen([*actions, self._target])
        return {
            action.name: self._alone(action) if seen is None else self._idle(seen, action)
            for action in actions
        }

    def seen(self, watched: Sequence[Action]) -> Seen | None:
        """The states told apart by what `watched` look at; None where those are too many."""
        try:
            found = explore(
                self._graph,
                self._actions,
                self._source,
                self._target,
                MOST,
                watched=watched,
            )
        except TooManyStates:
            return None
        return Seen(found.space, first_known(found.space, self._source.preconditions))

    def _alone(self, action: Action) -> str:
        """Which single needs of `action` nothing meets, whatever else is known."""
        entered = entry(self._source.preconditions)
        others = [other for other in self._actions if other is not action]
        unmet = {
            field: (want, entered.get(field))
            for field, want in action.requires.items()
            if not entails(entered.get(field), want) and not _givers(field, want, others)
        }
        if unmet:
            said = self._listed(action, unmet)
            return f"  {self._never(action)}; what it lacks on every walk:\n{said}"
        needs = "; ".join(f"{name}: {say(shape)}" for name, shape in action.requires.items())
        if action is self._goal:
            return (
                "  the goal is never met: there is a node for each of its parts, but no walk "
                f"brings them together\n    it is {needs}"
            )
        return (
            f"  {action.name} is on no walk: there is a node for each of its needs, but no walk "
            f"meets them all and leads on to {self._target.name}\n    needs {needs}"
        )

    def _idle(self, seen: Seen, action: Action) -> str:
        arcs = seen.space.arcs.values()
        after = {reached for steps in arcs for taken, reached in steps if taken is action}
        if not after:
            unmet = self._listed(action, nearest(seen, action))
            return f"  {self._never(action)}; what it lacks at best:\n{unmet}"
        stuck, lacking = self._stuck(seen, seen.space.after(sorted(after)))
        return (
            f"  {action.name} can run, but no walk leads on from it; nearest to going on is "
            f"{stuck.name}, which lacks:\n{self._listed(stuck, lacking)}"
        )

    def _stuck(self, seen: Seen, states: Sequence[State]) -> tuple[Action, Mapping[str, Lack]]:
        """What stands nearest to going on from some states, the same for all who lead there."""
        key = frozenset(states)
        if key not in seen.stuck:
            seen.stuck[key] = self._trail(seen, states, self._target)[-1]
        return seen.stuck[key]

    def _trail(
        self, seen: Seen, states: Sequence[State], target: Action
    ) -> list[tuple[Action, Mapping[str, Lack]]]:
        """What `target` lacks at best in `states`, then what the nearest that could help lacks.

        And so on, up to one that no node could help.
        """
        taken = {action for state in states for action, _ in seen.space.arcs[state]}
        trail: dict[Action, Mapping[str, Lack]] = {}
        action = target
        while action not in trail:
            unmet = trail[action] = nearest(seen, action, states)
            givers = [_givers(field, want, self._actions) for field, (want, _) in unmet.items()]
            helpers = {
                giver: nearest(seen, giver, states)
                for each in givers
                for giver in each
                if giver not in taken and giver not in trail
            }
            helpers = {a: lacking for a, lacking in helpers.items() if not self._barred(lacking)}
            if helpers and all(givers):
                action = min(helpers, key=lambda helper: (*distance(helpers[helper]), helper.name))
        return list(trail.items())

    def _barred(self, unmet: Mapping[str, Lack]) -> bool:
        """Whether something that must be absent is there to stay."""
        unwanted = [field for field, (want, _) in unmet.items() if want is None]
        return any(not _givers(field, None, self._actions) for field in unwanted)

    def _never(self, action: Action) -> str:
        return "the goal is never met" if action is self._goal else f"{action.name} never runs"

    def _listed(self, action: Action, unmet: Mapping[str, Lack]) -> str:
        """What an action lacks, one field a line."""
        others = [other for other in self._actions if other is not action]
        lines = []
        for field, (want, have) in unmet.items():
            implied = want is None and field not in action.preconditions
            why = f" ({action.name} would overwrite it)" if implied else ""
            lines.append(f"    {lacks(field, want, have, others)}{why}")
        return "\n".join(lines)


def nearest(
    seen: Seen, action: Action, states: Iterable[State] | None = None
) -> Mapping[str, Lack]:
    """What `action` lacks in the state that comes nearest to letting it run."""
    among = seen.space.arcs if states is None else states
    begun = [state for state in among if state != START]
    unended = [state for state in begun if state != seen.space.end] or begun
    return min((seen.lacks(state, action) for state in unended), key=distance, default={})


def lacks(field: str, want: Shape | None, have: Shape | None, actions: Sequence[Action]) -> str:
    """One unmet condition, and who could meet it."""
    givers = _some([giver.name for giver in _givers(field, want, actions)])
    if want is None:
        by = f"dropped by {givers}" if givers else "no node drops it"
        return f"{field}: must be absent, but is {say(have)}; {by}"
    by = f"given by {givers}" if givers else _closest(field, want, actions)
    return f"{field}: needs {say(want)}, has {'nothing' if have is None else say(have)}; {by}"


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


def distance(unmet: Mapping[str, Lack]) -> tuple[int, float]:
    """How far off conditions are from being met: how many are not, and by how much."""
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
