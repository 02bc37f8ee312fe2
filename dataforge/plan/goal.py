"""Plans: the walks that lead from given facts to a goal, whatever graphs there are.

It is the question PDDL asks: which actions, in which order. Only actions that help are considered,
and a plan with a step that could be left out is none. Among plans of one length there is no
preference but the alphabet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dataforge.errors import UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.explain import Why
from dataforge.plan.graph import MAX_STATES, Graph
from dataforge.plan.node import gate
from dataforge.plan.shape import Conditions, Known, Shape, entails, missing
from dataforge.plan.space import entry

__all__ = ["HAVE", "WANT", "Plans", "assumed", "plans", "relevant"]

HAVE, WANT = "have", "want"
"""Names of the gates that stand for the given facts and for the goal."""
_LOOKED_AT = 20_000


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans found, shortest first and then alphabetical."""

    found: tuple[tuple[Action, ...], ...]
    more: bool
    """Whether there may be others."""


def assumed(field: str, actions: Sequence[Action]) -> Shape | None:
    """What a field is taken to be when only its presence is given: good enough for any reader.

    That is all the bounds, lengths and marks that actions need of it, as far as they agree; not a
    choice among literals. None where no action reads or writes it.
    """
    seen = [
        shape
        for action in sorted(actions, key=lambda action: action.name)
        for shape in (action.preconditions.get(field), action.postconditions.get(field))
        if shape is not None
    ]
    if not seen:
        return None
    best = Shape(seen[0].base)
    for action in actions:
        want = action.preconditions.get(field)
        if want is not None and want.values is None:
            best = best.meet(replace(want, maybe=False)) or best
    return best


def relevant(actions: Sequence[Action], goal: Conditions) -> tuple[Action, ...]:
    """The actions that can meet a condition of the goal, or of another that can, and so on."""
    wanted = list(goal.items())
    asked = set(wanted)
    helping: dict[str, Action] = {}
    for field, want in wanted:
        for action in actions:
            given = action.postconditions
            if action.name in helping or field not in given or not entails(given[field], want):
                continue
            helping[action.name] = action
            for need in action.requires.items():
                if need not in asked:
                    asked.add(need)
                    wanted.append(need)
    return tuple(helping[name] for name in sorted(helping))


def plans(
    actions: Sequence[Action],
    have: Conditions,
    want: Conditions,
    limit: int,
    *,
    max_states: int = MAX_STATES,
) -> Plans:
    """The first `limit` plans from what one `have`s to what one `want`s.

    Raises `UnreachableTarget` where there are none, `TooManyStates` where they are too many to
    tell apart.
    """
    others = [action for action in actions if action.name not in (HAVE, WANT)]
    by_name = {action.name: action for action in relevant(others, want)}
    first, last = gate(HAVE, have), gate(WANT, want)
    helping = [*by_name.values(), first, last]
    try:
        graph = Graph.build("plan", helping, HAVE, WANT, max_states=max_states)
    except UnreachableTarget:
        # Those that give almost enough help no plan, but do explain that there is none.
        why = Why("plan", [*others, first, last], first, last).unreachable()
        raise UnreachableTarget(f"no walk leads from what is given to the goal\n{why}") from None
    looked_at = graph.walks(_LOOKED_AT)
    ways = (tuple(by_name[name] for name in walk[1:-1]) for walk in looked_at)
    known = entry(have)
    spare: Iterator[tuple[Action, ...]] = (way for way in ways if _needs_all(way, known, want))
    found = tuple(islice(spare, limit))
    more = next(spare, None) is not None or len(looked_at) == _LOOKED_AT
    return Plans(found, more)


def _needs_all(way: Sequence[Action], known: Known, want: Conditions) -> bool:
    """Whether no step of a plan can be left out."""
    return not any(
        _reaches([*way[:place], *way[place + 1 :]], known, want) for place in range(len(way))
    )


def _reaches(way: Sequence[Action], known: Known, want: Conditions) -> bool:
    for action in way:
        if missing(known, action.requires):
            return False
        known = action.after(known)
    return not missing(known, want)
