from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given

from dataforge.drawing.layout import Layout, Rect, lay_out
from dataforge.errors import GraphError
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from tests.drawing.graphs import layered, nested, small
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts


def places(layout: Layout) -> dict[str, Rect]:
    return {box.action.name: box.at for frame in layout.frames for box in frame.boxes}


def stages(layout: Layout) -> dict[str, int]:
    return {
        box.action.name: column.stage
        for column in layout.columns
        for frame in column.frames
        for box in frame.boxes
    }


def apart(one: Rect, two: Rect) -> bool:
    beside = one.right <= two.x or two.right <= one.x
    return beside or one.y + one.height <= two.y or two.y + two.height <= one.y


def holds(outer: Rect, inner: Rect) -> bool:
    return (
        outer.x <= inner.x
        and inner.right <= outer.right + 0.01
        and outer.y <= inner.y
        and inner.y + inner.height <= outer.y + outer.height + 0.01
    )


def check(graph: Graph) -> None:
    layout = lay_out(graph)
    assert places(layout).keys() == {action.name for action in graph.nodes}
    whole = Rect(0, 0, layout.width, layout.height)
    assert all(holds(whole, frame.at) for frame in layout.frames)
    assert all(holds(frame.at, box.at) for frame in layout.frames for box in frame.boxes)
    assert all(apart(one.at, two.at) for one, two in combinations(layout.frames, 2))
    for frame in layout.frames:
        assert all(apart(one.at, two.at) for one, two in combinations(frame.boxes, 2))


@pytest.mark.parametrize(
    "graph",
    [small(), nested(), layered(2, 60, 3), layered(1, 100, 1), layered(3, 40, 8)],
    ids=["small", "nested", "lanes", "one family", "many families"],
)
def test_every_node_stands_in_its_frame_and_nothing_overlaps(graph: Graph) -> None:
    check(graph)


@given(libraries())
def test_so_it_is_for_any_graph(actions: list[Action]) -> None:
    try:
        graph = Graph.build("any", actions, "source", "target")
    except GraphError:
        return
    check(graph)


def test_a_step_of_a_layered_graph_runs_to_the_right() -> None:
    for graph in (small(), nested(), layered(3, 40, 8)):
        placed = places(lay_out(graph))
        assert all(placed[edge.before].right < placed[edge.after].x for edge in graph.edges())


def test_a_stage_is_the_longest_distance_from_the_source() -> None:
    actions: list[Action] = [
        gate("go", {"p": TEXT}),
        acts("a", {"p": TEXT, "y": None}, {"x": TEXT}),
        acts("b", {"x": TEXT}, {"y": TEXT}),
        acts("short", {"p": TEXT, "x": None}, {"y": TEXT}),
        acts("end", {"y": TEXT}, {"z": TEXT}),
    ]
    graph = Graph.build("long and short", actions, "go", "end")
    assert stages(lay_out(graph)) == {"go": 1, "a": 2, "short": 2, "b": 3, "end": 4}


@pytest.mark.parametrize("families", [1, 3, 8])
@pytest.mark.parametrize(("deep", "wide"), [(5, 60), (2, 150), (1, 300)])
def test_three_hundred_nodes_keep_the_proportions_of_a_screen(
    deep: int, wide: int, families: int
) -> None:
    layout = lay_out(layered(deep, wide, families))
    assert 0.6 < layout.width / layout.height < 3


def test_a_thousand_families_of_one_node_are_no_endless_column() -> None:
    actions: list[Action] = [gate("go", {"p": TEXT}), acts("end", {"x": TEXT}, {"y": TEXT})]
    actions += [acts(f"family {n}/node", {"p": TEXT}, {"x": TEXT}) for n in range(1000)]
    layout = lay_out(Graph.build("wide", actions, "go", "end"))
    assert 0.6 < layout.width / layout.height < 3


def test_numbers_in_names_are_sorted_by_size() -> None:
    frame = lay_out(layered(1, 12, 1)).frames[1]
    assert [box.action.name for box in frame.boxes] == [f"a/stage 1 node {n}" for n in range(12)]
    actions: list[Action] = [gate("go", {"p": TEXT}), acts("end", {"x": TEXT}, {"y": TEXT})]
    actions += [acts(f"family {n}/node", {"p": TEXT}, {"x": TEXT}) for n in range(12)]
    frames = lay_out(Graph.build("wide", actions, "go", "end")).frames[1:-1]
    assert [frame.family for frame in frames] == [f"family {n}" for n in range(12)]


def test_a_long_name_is_cut_and_does_not_widen_the_picture() -> None:
    names = ["x" * 500, "長" * 500, "e\N{COMBINING ACUTE ACCENT}" * 500]
    for name in names:
        actions: list[Action] = [gate("go", {"p": TEXT}), acts(f"a/{name}", {"p": TEXT}, {})]
        layout = lay_out(Graph.build("long", actions, "go", f"a/{name}"))
        (box,) = layout.frames[1].boxes
        assert box.lines[0].endswith("…")
        assert box.at.width < 320
