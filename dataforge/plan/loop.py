"""Loops: a few steps tried again until what they make is good enough.

A walk has no cycle, so trying again lives inside one action. Each attempt starts afresh from the
record the loop was entered with, plus what the last attempt left as its critique; when attempts run
out the walk is rejected. It does not keep the best of several attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.action import Action, digest_of, names_of, told
from dataforge.plan.graph import Graph
from dataforge.plan.shape import Conditions, Shape, entails, say

__all__ = ["CRITIQUE", "Loop", "chain", "loop"]

CRITIQUE = "critique"
"""The entry field by which an attempt is handed what the last one left."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Loop(Action):
    """Steps run in order, at most `at_most` times, until `until` holds."""

    body: Graph
    """The steps, as a graph of a single walk."""
    until: Conditions
    """What ends the loop, checked on the record an attempt leaves."""
    at_most: int
    """Most attempts, >= 1."""
    critique: str | None = None
    """The field whose value is handed on as the next attempt's `critique`."""

    @property
    def inner(self) -> tuple[Action, ...]:
        """The steps."""
        return self.body.nodes

    @property
    def ways(self) -> int:
        """The ways through its body, taken anew by no attempt."""
        return self.body.ways

    @property
    def steps(self) -> tuple[Action, ...]:
        """The steps, in order."""
        (walk,) = self.body.walks(1)
        by_name = {action.name: action for action in self.body.nodes}
        return tuple(by_name[name] for name in walk)

    @cached_property
    def digest(self) -> str:
        """Hash over the steps in order and what ends the loop."""
        manner = f"{self.at_most} {self.critique} {self.weight}"
        insides = [f"{step.name} {step.digest}" for step in self.steps]
        return digest_of("loop", self.name, told(self.until), manner, *insides)


def chain(steps: Sequence[Action]) -> Conditions | None:
    """The least that must hold before `steps` so that they can run in order on a fresh record.

    None where they do not fit together.
    """
    try:
        return _weakest(steps)
    except DeclarationError:
        return None


def loop(
    name: str,
    steps: Sequence[Action],
    *,
    until: Conditions,
    at_most: int,
    critique: str | None = None,
    weight: float = 1.0,
    tags: Collection[str] = (),
) -> Loop:
    """A loop over `steps`, which must fit together in that order.

    Raises `DeclarationError` where they do not, or where what is handed back does not suit the
    step that reads it; `ContradictoryCondition` where `until` can never hold.
    """
    if at_most < 1:
        raise DeclarationError(f"loop {name!r}: at_most is {at_most}; the least is 1")
    if not steps:
        raise DeclarationError(f"loop {name!r}: no steps to repeat")
    doubled = sorted(name for name, count in Counter(s.name for s in steps).items() if count > 1)
    if doubled:
        raise DeclarationError(
            f"loop {name!r}: more than one step is named {', '.join(map(repr, doubled))}; "
            "rename one of them"
        )
    try:
        body = Graph.line(name, steps, _weakest(steps))
    except DeclarationError as error:
        raise DeclarationError(f"loop {name!r}: {error}") from None
    if critique is not None:
        _check_critique(name, body, critique)
    needs = {
        field: shape
        for field, shape in body.preconditions.items()
        if critique is None or field != CRITIQUE
    }
    return Loop(
        name=name,
        preconditions=MappingProxyType(needs),
        postconditions=MappingProxyType(_narrowed(name, body, until)),
        roles=body.roles,
        weight=weight,
        tags=names_of(f"loop {name!r}: tags", tags),
        body=body,
        until=MappingProxyType(dict(until)),
        at_most=at_most,
        critique=critique,
    )


def _weakest(steps: Sequence[Action]) -> Conditions:
    """What `chain` gives; raises `DeclarationError` saying which step does not fit and why."""
    needs: dict[str, Shape | None] = {}
    given: dict[str, Shape | None] = {}
    for step in steps:
        for field, want in step.requires.items():
            if field in given:
                if not entails(given[field], want):
                    raise _misfit(step, field, want, given[field])
            elif field in step.preconditions or field in needs:
                needs[field] = _both(step, field, needs.get(field, want), want)
        given |= step.postconditions
    return MappingProxyType(needs)


def _both(step: Action, field: str, one: Shape | None, two: Shape | None) -> Shape | None:
    """A condition that implies both of two."""
    if one is None or two is None:
        other = two if one is None else one
        if other is not None and not other.maybe:
            raise _misfit(step, field, two, one)
        return None
    both = one.meet(two)
    if both is None:
        raise _misfit(step, field, two, one)
    return both


def _misfit(step: Action, field: str, want: Shape | None, have: Shape | None) -> DeclarationError:
    return DeclarationError(
        f"{step.name} does not fit after the steps before it: {field} must be {say(want)}, "
        f"but is {say(have)}"
    )


def _check_critique(name: str, body: Graph, critique: str) -> None:
    """Whether what an attempt leaves can be handed to the next."""
    assert body.space.end is not None
    left = body.known(body.space.end).get(critique)
    if left is None or critique not in body.postconditions:
        raise DeclarationError(f"loop {name!r}: its critique is {critique!r}, which no step writes")
    read = body.preconditions.get(CRITIQUE)
    if read is None:
        return
    if not read.maybe:
        raise DeclarationError(
            f"loop {name!r}: a first attempt has no critique, so a step that reads it must take "
            "`critique` as optional"
        )
    if not left.within(read):
        raise DeclarationError(
            f"loop {name!r}: {critique!r} is {left.say()}, but is read as `critique`, {read.say()}"
        )


def _narrowed(name: str, body: Graph, until: Conditions) -> dict[str, Shape | None]:
    """What the body promises, once `until` holds as well."""
    promised = dict(body.postconditions)
    for field, want in until.items():
        have = promised.get(field)
        if have is None:
            raise DeclarationError(f"loop {name!r}: until reads {field!r}, which no step writes")
        if want is None:
            if not have.maybe:
                raise _never(name, field, want, have)
            promised[field] = None
            continue
        both = have.meet(want)
        if both is None:
            raise _never(name, field, want, have)
        if unread := want.deep_marks() - have.deep_marks():
            marks = ", ".join(sorted(str(mark) for _, mark in unread))
            raise DeclarationError(
                f"loop {name!r}: until cannot check of {field} that it is {want.say()}: {marks} is "
                "checked where a node promises it; let the step that writes it do so"
            )
        promised[field] = both
    promised.pop(CRITIQUE, None)
    return promised


def _never(name: str, field: str, want: Shape | None, have: Shape) -> ContradictoryCondition:
    return ContradictoryCondition(
        f"loop {name!r}: until can never hold: {field} must be {say(want)}, but is {have.say()}"
    )
