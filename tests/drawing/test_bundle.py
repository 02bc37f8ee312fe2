from __future__ import annotations

import pytest

from dataforge.drawing.bundle import THICKET, Bundle, bundle, curve
from dataforge.drawing.layout import Rect, lay_out
from dataforge.plan.graph import Graph
from tests.drawing.graphs import layered, nested, small


def bundles(graph: Graph) -> tuple[Bundle, ...]:
    return bundle(lay_out(graph), graph.edges())


@pytest.mark.parametrize("graph", [small(), nested(), layered(3, 40, 8)])
def test_every_edge_is_in_one_bundle_between_the_frames_of_its_ends(graph: Graph) -> None:
    frames = lay_out(graph).frames
    found = bundles(graph)
    assert sorted(edge for each in found for edge in each.edges) == list(graph.edges())
    for each in found:
        before = {box.action.name for box in frames[each.before].boxes}
        after = {box.action.name for box in frames[each.after].boxes}
        assert {edge.before for edge in each.edges} <= before
        assert {edge.after for edge in each.edges} <= after


def test_frames_joined_by_few_edges_keep_them_single() -> None:
    assert not any(each.ribbon for each in bundles(small()))


def test_a_thicket_is_one_ribbon_and_its_neighbours_stay_single() -> None:
    found = bundles(layered(2, 7, 1))
    counts = [(len(each.edges), each.ribbon) for each in found]
    assert counts == [(7, False), (49, True), (7, False)]
    assert THICKET == 40


def test_edges_that_would_run_behind_boxes_are_a_ribbon() -> None:
    graph = layered(1, 120, 1)
    assert any(len(frame.lanes) > 1 for frame in lay_out(graph).frames)
    assert all(each.ribbon for each in bundles(graph))


def test_where_the_rest_would_be_a_tangle_every_pair_is_a_ribbon() -> None:
    graph = layered(3, 24, 8)
    assert all(len(each.edges) < THICKET for each in bundles(graph))
    assert all(each.ribbon for each in bundles(graph))


def test_ribbons_leave_and_arrive_inside_the_frame_in_the_order_of_their_other_ends() -> None:
    graph = layered(3, 60, 3)
    frames = lay_out(graph).frames
    ribbons = [each for each in bundles(graph) if each.ribbon]
    for each in ribbons:
        assert abs(each.leaves) <= frames[each.before].at.height / 2
        assert abs(each.arrives) <= frames[each.after].at.height / 2
    for one in ribbons:
        for two in ribbons:
            higher = frames[one.after].at.middle < frames[two.after].at.middle
            if one.before == two.before and higher:
                assert one.leaves < two.leaves


def test_a_curve_joins_facing_sides() -> None:
    left, right = Rect(0, 0, 10, 20), Rect(100, 40, 10, 20)
    assert curve(left, right) == "M10.0,10.0 C50.5,10.0 59.5,50.0 100.0,50.0"
    assert curve(right, left).startswith("M100.0,50.0")
    assert curve(right, left).endswith("10.0,10.0")


def test_a_curve_within_a_column_or_a_frame_goes_around_on_the_right() -> None:
    upper, lower = Rect(0, 0, 10, 20), Rect(0, 40, 10, 20)
    assert curve(upper, lower) == "M10.0,10.0 C50.0,10.0 50.0,50.0 10.0,50.0"
    assert curve(upper, upper) == "M10.0,0.0 C45.0,0.0 45.0,20.0 10.0,20.0"
