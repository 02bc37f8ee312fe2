from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from dataforge.drawing.svg import svg
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from tests.drawing.graphs import HOSTILE, layered, nested, small
from tests.plan.scene import TEXT, acts

SVG = "{http://www.w3.org/2000/svg}"


def boxes(root: ET.Element) -> set[str]:
    """What the tooltip of each box begins with."""
    titles = [group.find(f"{SVG}title") for group in root.iter(f"{SVG}g")]
    return {(title.text or "").splitlines()[0] for title in titles if title is not None}


def tooltips(root: ET.Element) -> list[str]:
    """Those of edges and ribbons."""
    titles = [path.find(f"{SVG}title") for path in root.iter(f"{SVG}path")]
    return [title.text or "" for title in titles if title is not None]


def test_it_is_well_formed_and_draws_every_node_and_edge() -> None:
    for graph in (small(), nested()):
        root = ET.fromstring(svg(graph))
        assert boxes(root) == {action.name for action in graph.nodes}
        told = {f"{e.before} → {e.after} ({e.kind})" for e in graph.edges()}
        assert set(tooltips(root)) == told


def test_carried_edges_are_dashed() -> None:
    text = svg(small())
    assert re.search(r"\.carried \{[^}]*stroke-dasharray", text)
    assert 'class="edge carried"' in text


def test_a_loop_or_a_graph_is_one_box_that_names_what_is_inside() -> None:
    text = svg(small())
    assert "answer/plain → judge/fair" in text
    assert "at most 3 times, until verdict is" in text
    assert "graph of 4 nodes, 1 walk" in svg(nested())


def test_nodes_on_no_walk_are_listed() -> None:
    assert "On no walk: ask/idle" in svg(small())


def test_a_thicket_is_one_ribbon_that_says_how_many_edges_it_holds() -> None:
    root = ET.fromstring(svg(layered(2, 7, 1)))
    assert "a → a: 49 edges, 0 of them carried" in tooltips(root)
    assert len(tooltips(root)) == 1 + 7 + 7
    assert "49" in [text.text for text in root.iter(f"{SVG}text")]


def test_a_ribbon_is_dashed_where_all_its_edges_are_carried() -> None:
    actions: list[Action] = [gate("go", {"p": TEXT}), acts("end", {"y": TEXT}, {"z": TEXT})]
    actions += [acts(f"one/{n}", {"p": TEXT}, {"x": TEXT}) for n in range(7)]
    actions += [acts(f"two/{n}", {"p": TEXT, "x": TEXT}, {"y": TEXT}) for n in range(7)]
    graph = Graph.build("carried", actions, "go", "end")
    assert 'class="ribbon carried"' in svg(graph)
    assert 'class="ribbon"' in svg(layered(2, 7, 1))


def test_nodes_that_can_run_in_any_order_are_drawn_all_the_same() -> None:
    both = acts("both", {"x": TEXT, "y": TEXT}, {"z": TEXT})
    one, two = acts("a", {}, {"x": TEXT}), acts("b", {}, {"y": TEXT})
    graph = Graph.build("any order", [gate("go", {"p": TEXT}), one, two, both], "go", "both")
    assert boxes(ET.fromstring(svg(graph))) == {"go", "a", "b", "both"}


def test_names_are_text_and_never_markup() -> None:
    root = ET.fromstring(svg(small()))
    assert HOSTILE.partition("/")[2] in [text.text for text in root.iter(f"{SVG}text")]


def test_a_huge_number_of_walks_is_told_by_its_size() -> None:
    assert "about 10^20 walks of 22 nodes" in svg(layered(20, 10, 1))
