"""Plans: the walks that lead from given facts to a goal, whatever graphs there are.

It is the question PDDL asks: which actions, in which order. Only actions that help are considered,
and a plan with a step that could be left out is none. Among plans of one length there is no
preference but the alphabet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dataforge.errors import TooManyStates, UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.explain import Why
from dataforge.plan.graph import MAX_STATES, Graph
from dataforge.plan.node import gate
from dataforge.plan.shape import Conditions, Known, Shape, entails, missing
from dataforge.plan.space import entry

__all__ = ["LOOKED_AT", "Assumed", "Plans", "assumed", "plans", "relevant"]

_GIVEN, _GOAL = "what is given", "the goal"
"""Names of the gates that stand for the given facts and for the goal; primed where taken."""
LOOKED_AT = 20_000
"""How many walks are looked at, shortest first, for such as no step can be left out of."""


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans found, shortest first and then alphabetical."""

    found: tuple[tuple[Action, ...], ...]
    more: bool
    """Whether there are others."""
    cut: bool
    """Whether there were more than `LOOKED_AT` walks, so that others may not have been seen."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a field is taken to be of which only the presence is given."""

    shape: Shape
    asking: tuple[tuple[str, Shape], ...]
    """Readers that need more than that, by name, each with what it needs; optional or not."""


def assumed(field: str, actions: Sequence[Action]) -> Assumed | None:
    """What a field is taken to be when only its presence is given; None where nobody uses it.

    That is good enough for every reader, as far as bounds, lengths and marks go, but no choice
    among literals. Where no value is good enough for all, nothing is assumed but the type: which
    of them is meant is not the planner's to say.
    """
    ordered = sorted(actions, key=lambda action: action.name)
    wants = [
        (action.name, replace(want, maybe=False))
        for action in ordered
        if (want := action.preconditions.get(field)) is not None
    ]
    read = [want for _, want in wants]
    written = [
        shape for action in ordered if (shape := action.postconditions.get(field)) is not None
    ]
    if not (read or written):
        return None
    kind = _in_all(Shape(shape.base) for shape in read or written[:1]) or Shape()
    best = _in_all([kind, *(want for want in read if want.values is None)]) or kind
    asking = tuple((name, want) for name, want in wants if not best.within(want))
    return Assumed(best, asking)


def _in_all(shapes: Iterable[Shape]) -> Shape | None:
    """The largest shape inside all of them; None where there is none."""
    inside: Shape | None = Shape()
    for shape in shapes:
        inside = inside.meet(shape) if inside is not None else None
    return inside


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
    by_name = {action.name: action for action in relevant(actions, want)}
    taken = {action.name for action in actions}
    first, last = gate(_free(_GIVEN, taken), have), gate(_free(_GOAL, taken), want)
    helping = [*by_name.values(), first, last]
    try:
        graph = Graph.build("plan", helping, first.name, last.name, max_states=max_states)
    except UnreachableTarget:
        # Those that give almost enough help no plan, but do explain that there is none.
        why = Why("plan", [*actions, first, last], first, last, goal=True).unreachable()
        raise UnreachableTarget(f"no walk leads from what is given to the goal\n{why}") from None
    except TooManyStates as error:
        raise TooManyStates(
            f"there are more than {max_states:,} states between what is given and the goal; what "
            f"multiplies them: {error.causes}. Ask for less at once, or for one graph's nodes",
            error.causes,
        ) from None
    walks = graph.walks(LOOKED_AT + 1)
    ways = (tuple(by_name[name] for name in walk[1:-1]) for walk in walks[:LOOKED_AT])
    known = entry(have)
    spare: Iterator[tuple[Action, ...]] = (way for way in ways if _needs_all(way, known, want))
    found = tuple(islice(spare, limit))
    return Plans(found, more=next(spare, None) is not None, cut=len(walks) > LOOKED_AT)


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name


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
