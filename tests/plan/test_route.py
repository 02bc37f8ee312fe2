"""Routes are walks chosen whole, and nesting does not change which."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import loop
from dataforge.plan.node import gate
from dataforge.plan.route import Route, names, numbered, stepwise
from dataforge.plan.shape import Conditions
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, one_of


def outer_names(route: Route) -> tuple[str, ...]:
    return tuple(step.action.name for step in route)


def stage(number: int, kinds: int) -> list[Action]:
    """Nodes that lead from `text{number}` to the next, one or two steps long."""
    here, there = f"text{number}", f"text{number + 1}"
    half = f"half{number}"
    whole: list[Action] = [
        acts(f"{number}/{kind}", {here: TEXT, half: None}, {there: TEXT}) for kind in range(kinds)
    ]
    halves: list[Action] = [
        acts(f"{number}/x", {here: TEXT, there: None}, {half: TEXT}),
        acts(f"{number}/y", {half: TEXT}, {there: TEXT}),
    ]
    return whole + halves


def flat(depth: int) -> Graph:
    """Stages one after another."""
    actions: list[Action] = [gate("0", {"text0": TEXT})]
    for number in range(depth):
        actions += stage(number, 2 + number % 2)
    actions.append(acts("z", {f"text{depth}": TEXT}, {"done": TEXT}))
    return Graph.build("flat", actions, "0", "z")


def nested(depth: int) -> Graph:
    """The same stages, each holding all before it as a graph."""
    first: Action = gate("0", {"text0": TEXT})
    for number in range(depth):
        last = acts(f"end{number}", {f"text{number + 1}": TEXT}, {})
        made = Graph.build(
            f"upto{number}", [first, *stage(number, 2 + number % 2), last], first.name, last.name
        )
        first = made
    end = acts("z", {f"text{depth}": TEXT}, {"done": TEXT})
    return Graph.build("nested", [first, end], first.name, "z")


def nodes_of(route: Route) -> list[str]:
    """The nodes that are in the flat graph too."""
    return [name for name in names(route) if not name.startswith("end")]


def drawing(seed: int) -> Callable[[Sequence[Action]], int]:
    """A pick by the draws that belong to a seed."""
    source = random.Random(seed)
    return lambda actions: source.randrange(len(actions))


def test_a_graph_nested_six_deep_walks_as_its_flat_expansion_does() -> None:
    inside, out = nested(6), flat(6)
    assert inside.count_walks() == out.count_walks() == 3**3 * 4**3
    for seed in range(200):
        deep, plain = stepwise(inside, drawing(seed)), stepwise(out, drawing(seed))
        assert nodes_of(deep) == nodes_of(plain)


def test_a_number_names_the_same_walk_nested_six_deep_and_flat() -> None:
    inside, out = nested(6), flat(6)
    walks = [nodes_of(numbered(inside, number)) for number in range(inside.count_walks())]
    assert walks == [nodes_of(numbered(out, number)) for number in range(out.count_walks())]


@given(libraries())
def test_the_numbers_are_the_walks_each_once_and_in_order(actions: list[Action]) -> None:
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        return
    walks = [outer_names(numbered(graph, number)) for number in range(graph.count_walks())]
    assert walks == sorted(graph.walks(len(walks) + 1))


@given(libraries(), st.integers(0, 99))
def test_a_route_is_a_walk_however_it_is_picked(actions: list[Action], seed: int) -> None:
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        return
    route = stepwise(graph, drawing(seed))
    assert outer_names(route) in graph.walks(graph.count_walks())


def test_ways_through_a_loop_count_once_and_the_body_is_in_the_route() -> None:
    needs: Conditions = {"text": TEXT}
    inner = Graph.build(
        "write",
        [
            gate("in", needs),
            acts("a", needs, {"answer": TEXT}),
            acts("b", needs, {"answer": TEXT}),
            acts("out", {"answer": TEXT}, {}),
        ],
        "in",
        "out",
    )
    judge = acts("judge", {"answer": TEXT}, {"verdict": one_of("pass", "fail")})
    tried = loop("try", [inner, judge], until={"verdict": one_of("pass")}, at_most=3)
    graph = Graph.build("g", [gate("go", needs), tried], "go", "try")
    assert graph.count_walks() == 2
    assert [list(names(numbered(graph, n))) for n in range(2)] == [
        ["go", "in", "a", "out", "judge"],
        ["go", "in", "b", "out", "judge"],
    ]


@pytest.mark.parametrize("number", [-1, 1728])
def test_a_number_of_no_walk_is_refused(number: int) -> None:
    with pytest.raises(IndexError, match=f"walk {number} of 1728"):
        numbered(flat(6), number)
