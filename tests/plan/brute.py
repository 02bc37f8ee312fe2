"""A graph's walks worked out the slow way, over concrete records, to compare with.

A state here is the set of all records a walk so far can have made. It shares with the engine only
the definition of a node; it merges nothing, prunes nothing and knows no shapes but by membership.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from dataforge.plan.action import Action
from dataforge.plan.shape import Conditions

Record = frozenset[tuple[str, int]]
Choices = Mapping[str, Sequence[int | None]]

DOMAIN = (1, 2, 3)


def walks(
    actions: Sequence[Action], source: Action, target: Action
) -> dict[tuple[str, ...], set[Record]]:
    """Every walk from source to target, and the records it can end with."""
    found: dict[tuple[str, ...], set[Record]] = {}
    entry = _combined(_choices(source.preconditions))
    first = {after for record in entry for after in _ran(source, record)}
    waiting: list[tuple[tuple[str, ...], set[Record]]] = [((source.name,), first)]
    while waiting:
        path, records = waiting.pop()
        if path[-1] == target.name:
            found[path] = records
            continue
        for action in actions:
            if action.name not in path and all(_may_run(action, record) for record in records):
                after = {made for record in records for made in _ran(action, record)}
                waiting.append(((*path, action.name), after))
    return found


def _choices(conditions: Conditions) -> Choices:
    """Field -> the values it can have; None for absent."""
    return {
        name: [None]
        if shape is None
        else [value for value in (*DOMAIN, None) if shape.holds(value)]
        for name, shape in conditions.items()
    }


def _combined(choices: Choices) -> set[Record]:
    return {
        frozenset((name, value) for name, value in zip(choices, values, strict=True) if value)
        for values in product(*choices.values())
    }


def _may_run(action: Action, record: Record) -> bool:
    held = dict(record)
    for name, shape in action.preconditions.items():
        if not (name not in held if shape is None else shape.holds(held.get(name))):
            return False
    return all(
        name not in held or name in action.preconditions
        for name, shape in action.postconditions.items()
        if shape is not None
    )


def _ran(action: Action, record: Record) -> Iterator[Record]:
    kept = frozenset((name, value) for name, value in record if name not in action.postconditions)
    for made in _combined(_choices(action.postconditions)):
        yield kept | made
