from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import loop
from dataforge.plan.node import gate
from dataforge.plan.picture import mermaid, svg
from dataforge.plan.shape import Shape
from tests.plan.scene import TEXT, acts, one_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn() -> Graph:
    answer = acts("answer/plain", {"question": TEXT}, {"answer": TEXT})
    judge = acts("judge/fair", {"answer": TEXT}, {"verdict": one_of("pass", "fail")})
    tried = loop("tried/plain", [answer, judge], until={"verdict": one_of("pass")}, at_most=3)
    actions: list[Action] = [
        gate("seed/gate", {"passage": TEXT}),
        acts("ask/<odd> & more", {"passage": TEXT}, {"question": TEXT}),
        acts("ask/plain", {"passage": TEXT}, {"question": TEXT}),
        tried,
        acts("end", {"question": TEXT, "answer": TEXT}, {"messages": Shape(list)}),
        acts("ask/idle", {"mood": TEXT}, {"question": TEXT}),
    ]
    return Graph.build("a picture", actions, "seed/gate", "end")


def places(root: ET.Element) -> dict[str, float]:
    """Name of each box -> where it begins, from the left."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert title.text is not None
        assert box is not None
        found[title.text.splitlines()[0]] = float(box.attrib["x"])
    return found


def test_the_svg_is_well_formed_and_draws_every_node_and_edge() -> None:
    graph = drawn()
    root = ET.fromstring(svg(graph))
    assert places(root).keys() == {action.name for action in graph.nodes}
    edges = [path.find(f"{SVG}title") for path in root.iter(f"{SVG}path")]
    told = {title.text for title in edges if title is not None}
    assert told == {f"{e.before} → {e.after} ({e.kind})" for e in graph.edges()}


def test_every_edge_of_a_layered_graph_runs_from_left_to_right() -> None:
    graph = drawn()
    left = places(ET.fromstring(svg(graph)))
    assert all(left[edge.before] < left[edge.after] for edge in graph.edges())


def test_carried_edges_are_dashed() -> None:
    text = svg(drawn())
    assert re.search(r"\.carried \{[^}]*stroke-dasharray", text)
    assert 'class="edge carried"' in text


def test_a_loop_is_one_box_that_names_what_is_inside() -> None:
    text = svg(drawn())
    assert "answer/plain → judge/fair" in text
    assert "at most 3 times, until verdict is" in text


def test_nodes_on_no_walk_are_listed() -> None:
    assert "On no walk: ask/idle" in svg(drawn())


def test_families_joined_by_very_many_edges_are_joined_thinly() -> None:
    actions: list[Action] = [gate("go", {"p": TEXT}), acts("end", {"y": TEXT}, {"z": TEXT})]
    actions += [acts(f"one/{n}", {"p": TEXT}, {"x": TEXT}) for n in range(7)]
    actions += [acts(f"two/{n}", {"x": TEXT}, {"y": TEXT}) for n in range(7)]
    text = svg(Graph.build("many", actions, "go", "end"))
    assert text.count('class="edge tight thin"') == 49


def test_nodes_that_can_run_in_any_order_are_drawn_all_the_same() -> None:
    both = acts("both", {"x": TEXT, "y": TEXT}, {"z": TEXT})
    one, two = acts("a", {}, {"x": TEXT}), acts("b", {}, {"y": TEXT})
    graph = Graph.build("any order", [gate("go", {"p": TEXT}), one, two, both], "go", "both")
    assert places(ET.fromstring(svg(graph))).keys() == {"go", "a", "b", "both"}


def test_mermaid_frames_families_and_dots_carried_edges() -> None:
    text = mermaid(drawn())
    assert text == (
        "flowchart LR\n"
        '  subgraph f0["ask"]\n'
        '    n0["#lt;odd> & more"]\n'
        '    n1["plain"]\n'
        "  end\n"
        '  subgraph f1["end"]\n'
        '    n2(["end"])\n'
        "  end\n"
        '  subgraph f2["seed"]\n'
        '    n3(["gate"])\n'
        "  end\n"
        '  subgraph f3["tried"]\n'
        '    n4[["plain<br/>answer/plain → judge/fair<br/>'
        "at most 3 times, until verdict is 'pass'\"]]\n"
        "  end\n"
        "  n0 --> n4\n"
        "  n1 --> n4\n"
        "  n3 --> n0\n"
        "  n3 --> n1\n"
        "  n4 -.-> n2\n"
    )
