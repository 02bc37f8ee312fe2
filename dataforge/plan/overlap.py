"""Overlaps: where a graph leaves open what its author may think is settled.

Two kinds. A literal does not tell who wrote it, where two nodes write some of the same values and
some others; and two nodes that can run in either order may give another result each way, where one
writes what the other reads or writes. Neither is an error. Nodes whose choices are wholly the same
are alternatives, and are not told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.needs import bits
from dataforge.plan.shape import Shape, say
from dataforge.plan.space import State

__all__ = ["overlaps"]


def overlaps(graph: Graph) -> tuple[str, ...]:
    """Every overlap of a graph's nodes, in sentences, sorted."""
    return (*_values(graph), *_orders(graph))


def _values(graph: Graph) -> list[str]:
    """Literal values by which their writer cannot be told."""
    writers: dict[str, dict[Shape, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in graph.nodes:
        for field, shape in node.postconditions.items():
            if shape is not None and shape.values is not None:
                writers[field][shape].append(node.name)
    found = []
    for field, shapes in sorted(writers.items()):
        ordered = sorted(shapes, key=lambda shape: shapes[shape])
        for place, one in enumerate(ordered):
            for other in ordered[place + 1 :]:
                assert one.values is not None and other.values is not None
                if one.values != other.values and (both := one.values & other.values):
                    found.append(
                        f"{field}: {say(Shape(values=both))} may come from "
                        f"{_some(shapes[one])} ({say(one)}) or {_some(shapes[other])} "
                        f"({say(other)})"
                    )
    return found


def _orders(graph: Graph) -> list[str]:
    """Pairs that can run in either order, though one touches what the other looks at."""
    later = _later(graph)
    found = []
    for place, one in enumerate(graph.nodes):
        for number in bits(later[place] >> place + 1):
            other = graph.nodes[place + 1 + number]
            if not later[place + 1 + number] >> place & 1:
                continue
            touched = sorted(_touched(one, other))
            if touched:
                found.append(
                    f"{one.name} and {other.name} run in either order, and what becomes of "
                    f"{', '.join(touched)} may depend on it"
                )
    return found


def _later(graph: Graph) -> list[int]:
    """Node -> those that some walk takes after it, as bits."""
    number: Mapping[str, int] = {node.name: place for place, node in enumerate(graph.nodes)}
    ahead: dict[State, int] = {}
    later = [0] * len(graph.nodes)
    for state in graph.space.last_first():
        ahead[state] = 0
        for action, reached in graph.choices(state):
            ahead[state] |= ahead[reached] | 1 << number[action.name]
            later[number[action.name]] |= ahead[reached]
    return later


def _touched(one: Action, other: Action) -> set[str]:
    """The fields that one node writes and the other reads or writes."""
    writes, also_writes = set(one.postconditions), set(other.postconditions)
    return writes & (also_writes | set(other.preconditions)) | also_writes & set(one.preconditions)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
