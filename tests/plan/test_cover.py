"""Covering routes leave no edge out and wear all of them evenly."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from dataforge.errors import UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.cover import Cover
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from dataforge.plan.route import names
from dataforge.plan.shape import Conditions
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, one_of


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(edge.before, edge.after) for edge in graph.edges()}


@given(libraries())
def test_as_many_walks_as_edges_visit_every_edge_and_k_times_as_many_each_k_times(
    actions: list[Action],
) -> None:
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        return
    cover, walks, every = Cover(graph), set(graph.walks(graph.count_walks())), edges(graph)
    for k in range(1, 4):
        for _ in every:
            before = dict(cover.visits)
            route = tuple(step.action.name for step in cover.route())
            assert route in walks
            least = min(before.get(edge, 0) for edge in every)
            assert any(before.get(edge, 0) == least for edge in pairwise(route))
        assert set(cover.visits) == every
        assert min(cover.visits.values(), default=k) >= k


def stages(*widths: int) -> Graph:
    """Stages of so many nodes, each joined to all of the next."""
    actions: list[Action] = [gate("go", {"t0": TEXT})]
    for number, width in enumerate(widths):
        needs: Conditions = {f"t{number}": TEXT}
        actions += [
            acts(f"s{number}/{each}", needs, {f"t{number + 1}": TEXT}) for each in range(width)
        ]
    actions.append(acts("end", {f"t{len(widths)}": TEXT}, {"done": TEXT}))
    return Graph.build("stages", actions, "go", "end")


@pytest.mark.parametrize("widths", [(5, 5, 5), (3, 7), (2, 6, 3), (4, 1, 4)])
def test_a_regular_graph_is_covered_by_the_fewest_walks_there_can_be(
    widths: tuple[int, ...],
) -> None:
    graph = stages(*widths)
    fewest = max(a * b for a, b in pairwise((1, *widths, 1)))
    cover = Cover(graph)
    for _ in range(fewest):
        cover.route()
    assert set(cover.visits) == edges(graph)


def test_a_rare_way_behind_a_wide_choice_is_found_at_once() -> None:
    needs: Conditions = {"t0": TEXT}
    wide: list[Action] = [acts(f"wide/{n}", needs, {"kind": one_of("w")}) for n in range(50)]
    rare = acts("zrare", needs, {"kind": one_of("r")})
    last = [acts(f"last/{k}", {"kind": one_of(k)}, {"q": TEXT}) for k in "rw"]
    end = acts("end", {"q": TEXT}, {"done": TEXT})
    graph = Graph.build("rare", [gate("go", needs), *wide, rare, *last, end], "go", "end")
    cover = Cover(graph)
    for _ in range(51):
        cover.route()
    assert set(cover.visits) == edges(graph)


def test_edges_inside_a_nested_graph_are_covered_too() -> None:
    inner = stages(3, 3)
    graph = Graph.build("outer", [gate("on", {"t0": TEXT}), inner], "on", "stages")
    cover = Cover(graph)
    seen = {pair for _ in range(9) for pair in pairwise(names(cover.route()))}
    assert edges(inner) <= seen


def test_a_single_node_is_a_route() -> None:
    graph = Graph.build("one", [gate("go", {})], "go", "go")
    cover = Cover(graph)
    assert [[step.action.name for step in cover.route()] for _ in range(2)] == [["go"], ["go"]]
