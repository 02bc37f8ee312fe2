"""Finds the states of a graph: what is left to do at each point, not how it was come by.

Naive exploration keeps all that is known, and a thousand nodes have more such states than could be
listed. Here a state is only what can still matter, and that is exact:

- Of a field only is kept which conditions of actions it meets (`needs.py`). Whether an action is
  open depends on nothing else, and a step changes these bits by what it promises alone; so two
  points that agree in them agree in all that follows.
- An action may run no more once it has run, or once a condition it needs is unmet and no action
  that may run can meet it. The actions that may run are the largest set that agrees with this: it
  errs only by holding too much, and it only shrinks along a walk, since what may run after a step
  might have run before it.
- Only the live conditions are kept: those that some action needs which may still run. Whatever runs
  later is among these actions, so a condition that is dropped is never looked at again.

So a state is the actions that may run and which live conditions are met. It does not depend on the
way to it, and since no step is taken twice, the states form a DAG.

What is not merged: states that differ in a fact some later step can see, though nothing comes of
it. Many optional steps that do not exclude each other therefore multiply the states, up to
`max_states`; a graph of their own makes them one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataforge.errors import TooManyStates
from dataforge.plan.action import Action
from dataforge.plan.needs import Needs, bits
from dataforge.plan.space import START, Arc, Space, State, entry

__all__ = ["Exploration", "explore", "repeatable"]

Key = tuple[int, int]
"""The live conditions that are met, and the actions that may still run; both as bits."""
Arcs = Mapping[Key, tuple[tuple[int, Key], ...]]
"""State -> the actions open there, by number, each with the state after it."""

_END: Key = (-1, 0)


@dataclass(frozen=True, slots=True)
class Exploration:
    """What exploring found, and what makes exploring with one more action shorter."""

    space: Space
    """All states, dead ends among them, though none is followed that can reach no end."""
    needs: Needs
    """The actions, numbered as the exploration numbers them."""
    arcs: Arcs


def explore(
    name: str,
    actions: Sequence[Action],
    source: Action,
    target: Action,
    max_states: int,
    *,
    before: Exploration | None = None,
    watched: Sequence[Action] = (),
) -> Exploration:
    """All states that walks from `source` can be in; they end at `target`.

    `before`: the exploration without the last of the actions. `watched`: actions to learn why they
    do not run; then all that is known of what they need is kept in every state, and dead ends are
    followed too. Raises `TooManyStates`.
    """
    looked_at = {field for action in watched for field in action.requires}
    needs = Needs(actions, before.needs if before else None, looked_at)
    return _Explorer(name, needs, source, target, max_states, before, watched).run()


class _Explorer:
    def __init__(
        self,
        name: str,
        needs: Needs,
        source: Action,
        target: Action,
        max_states: int,
        before: Exploration | None,
        watched: Sequence[Action],
    ) -> None:
        self.name, self.needs, self.source = name, needs, source
        self.max_states, self.before = max_states, before
        number = {action: place for place, action in enumerate(needs.actions)}
        self.start, self.target = number[source], number[target]
        self.again = repeatable(needs.actions) & ~(1 << self.start | 1 << self.target)
        self.watched = 0
        for field in {field for action in watched for field in action.requires}:
            self.watched |= needs.fields[field]
        self.seen: set[Key] = set()
        self.settled: dict[Key, Key] = {}
        self.live_of: dict[int, int] = {}
        self.supported_by: dict[int, int] = {}
        self.users_of: dict[int, int] = {}
        self.queue: deque[Key] = deque()

    def run(self) -> Exploration:
        first = _END if self.start == self.target else self._first()
        arcs: dict[Key, tuple[tuple[int, Key], ...]] = {_END: ()}
        while self.queue:
            key = self.queue.popleft()
            arcs[key] = self._known(key) or self._steps(key)
        return Exploration(self._space(first, arcs), self.needs, arcs)

    def _first(self) -> Key:
        pool = (1 << len(self.needs.actions)) - 1 & ~(1 << self.start)
        kept, given = self.needs.effect[self.start]
        met = self.needs.met(entry(self.source.preconditions)) & kept | given
        key = self._settle(met, pool, self.needs.all)
        self._reach(key)
        return key

    def _known(self, key: Key) -> tuple[tuple[int, Key], ...]:
        """The arcs found before; a state in which the newest action may run was not there then."""
        if self.before is None:
            return ()
        found = self.before.arcs.get(key, ())
        for _, reached in found:
            self._reach(reached)
        return found

    def _steps(self, key: Key) -> tuple[tuple[int, Key], ...]:
        met, may = key
        live = self._live(may)
        steps: list[tuple[int, Key]] = []
        after: dict[tuple[int, int, int], Key] = {}
        for action in bits(may & ~self._users(live & ~met)):
            if action == self.target:
                steps.append((action, _END))
                continue
            kept, given = self.needs.effect[action]
            once = self.again & (1 << action)
            reached = after.get((kept, given, once))
            if reached is None:
                reached = self._settle(
                    (met & kept | given) & (live | self.watched), may & ~once, live
                )
                after[kept, given, once] = reached
            if self._reach(reached):
                steps.append((action, reached))
        return tuple(steps)

    def _settle(self, met: int, may: int, live: int) -> Key:
        """The state of a point, given the actions and conditions that mattered just before."""
        key = self.settled.get((met, may))
        if key is None:
            left = self._may(met, may, live)
            left_live = self._live(left, live)
            key = self.settled[met, may] = (met & (left_live | self.watched), left)
        return key

    def _reach(self, key: Key) -> bool:
        """Whether a state is one to follow, put in the queue where it is new."""
        if not (self.watched or key[1] >> self.target & 1):
            return key == _END
        if key not in self.seen and key != _END:
            self.seen.add(key)
            self.queue.append(key)
            if len(self.seen) > self.max_states:
                raise self._explosion()
        return True

    def _may(self, met: int, may: int, live: int) -> int:
        """Of the actions, those that may still run: the greatest fixpoint."""
        while True:
            left = may & ~self._users(live & ~met & ~self._supported(may))
            if left == may:
                return may
            may = left

    def _supported(self, may: int) -> int:
        """The conditions that some action of `may` can meet; the target is the last to run."""
        found = self.supported_by.get(may)
        if found is None:
            helping = may & ~(1 << self.target)
            found = sum(
                1 << bit for bit, givers in enumerate(self.needs.givers) if givers & helping
            )
            self.supported_by[may] = found
        return found

    def _users(self, conditions: int) -> int:
        """The actions that need one of the conditions."""
        found = self.users_of.get(conditions)
        if found is None:
            found = 0
            for bit in bits(conditions):
                found |= self.needs.users[bit]
            self.users_of[conditions] = found
        return found

    def _live(self, may: int, among: int = -1) -> int:
        """The conditions that some action of `may` needs; all of them are `among`."""
        live = self.live_of.get(may)
        if live is None:
            users = self.needs.users
            live = 0
            for bit in bits(among & self.needs.all):
                if users[bit] & may:
                    live |= 1 << bit
            self.live_of[may] = live
        return live

    def _space(self, first: Key, arcs: Arcs) -> Space:
        """The states numbered in the order a walk can first reach them, arcs by name."""
        actions = self.needs.actions
        names = sorted(range(len(actions)), key=lambda number: actions[number].name)
        rank = [0] * len(names)
        for place, number in enumerate(names):
            rank[number] = place
        numbers: dict[Key, State] = {first: State(1)}
        order = [first]
        spaced: dict[State, tuple[Arc, ...]] = {START: ((self.source, State(1)),)}
        for key in order:
            found: list[Arc] = []
            for action, reached in sorted(arcs.get(key, ()), key=lambda arc: rank[arc[0]]):
                if reached not in numbers:
                    numbers[reached] = State(len(numbers) + 1)
                    order.append(reached)
                found.append((actions[action], numbers[reached]))
            spaced[numbers[key]] = tuple(found)
        return Space(spaced, numbers.get(_END))

    def _explosion(self) -> TooManyStates:
        """Which fields multiply the states, and what to do."""
        variety = {
            field: len({met & mask for met, _ in self.seen})
            for field, mask in self.needs.fields.items()
        }
        various = sorted(
            (field for field, count in variety.items() if count > 1),
            key=lambda field: (-variety[field], field),
        )
        repeats = sorted(self.needs.actions[number].name for number in bits(self.again))
        causes = []
        if various:
            causes.append(_some([f"{field} ({variety[field]} different)" for field in various]))
        if repeats:
            causes.append(f"that each of these may or may not have run: {_some(repeats)}")
        nodes = "the nodes that write and read them" if various else "these nodes"
        told = ", and ".join(causes)
        return TooManyStates(
            f"graph {self.name!r} has more than {self.max_states:,} states; what multiplies them: "
            f"{told}. Split {nodes} over several graphs of their own, a few in each, since all in "
            "one are as many again, and name each graph here as one node. It hands on only what "
            "every walk through it leaves behind: where a later node reads what just some of its "
            "nodes write, let it end with a node that puts that into one field whichever ran",
            told,
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def repeatable(actions: Sequence[Action]) -> int:
    """The actions, as bits, that what is known would not keep from running twice."""
    dropped = {
        field
        for action in actions
        for field, shape in action.postconditions.items()
        if shape is None
    }
    found = 0
    for number, action in enumerate(actions):
        stays = any(
            shape is not None and action.requires.get(field, shape) is None and field not in dropped
            for field, shape in action.postconditions.items()
        )
        if not stays:
            found |= 1 << number
    return found
