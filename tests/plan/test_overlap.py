"""Overlaps are told where a writer or an order is left open, and nowhere else."""

from __future__ import annotations

from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from dataforge.plan.overlap import overlaps
from tests.plan.scene import TEXT, acts, at_least, one_of

GO = gate("go", {"text": TEXT})
END = acts("end", {"kind": TEXT}, {"done": TEXT})


def graph(*nodes: object) -> Graph:
    return Graph.build("g", [GO, END, *nodes], "go", "end")  # type: ignore[list-item]


def test_values_that_two_nodes_share_in_part_do_not_tell_who_wrote_them() -> None:
    one = acts("one", {}, {"kind": one_of("a", "b")})
    other = acts("other", {}, {"kind": one_of("b", "c")})
    assert overlaps(graph(one, other)) == (
        "kind: 'b' may come from one (one of 'a', 'b') or other (one of 'b', 'c')",
    )


def test_nodes_of_the_same_values_or_of_none_in_common_are_alternatives() -> None:
    nodes = [acts(f"n{n}", {}, {"kind": one_of("a")}) for n in range(3)]
    assert overlaps(graph(*nodes, acts("m", {}, {"kind": one_of("b")}))) == ()


def test_rewriters_of_one_field_in_either_order_are_told() -> None:
    kind = acts("kind", {}, {"kind": one_of("a")})
    trim = acts("trim", {"text": TEXT}, {"text": TEXT})
    polish = acts("polish", {"text": TEXT}, {"text": TEXT})
    assert overlaps(graph(kind, trim, polish)) == (
        "polish and trim run in either order, and what becomes of text may depend on it",
    )


def test_nodes_that_only_read_the_same_field_are_not() -> None:
    kind = acts("kind", {"text": TEXT}, {"kind": one_of("a")})
    note = acts("note", {"text": TEXT}, {"note": TEXT})
    assert overlaps(graph(kind, note)) == ()


def test_an_order_that_is_fixed_is_no_overlap() -> None:
    kind = acts("kind", {"long": TEXT}, {"kind": one_of("a")})
    grow = acts("grow", {"text": TEXT}, {"text": at_least(100), "long": TEXT})
    assert overlaps(graph(kind, grow)) == ()
