"""States hold what still matters and nothing else, and merging them loses no walk."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given

from dataforge.errors import DuplicateName, GraphError, NodeOnNoWalk, TooManyStates
from dataforge.errors import UnreachableTarget as Unreachable
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from dataforge.plan.shape import Conditions, Shape
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, at_least, one_of

GO = gate("go", {"passage": at_least(500)})


def states(graph: Graph) -> int:
    return len(graph.space.arcs)


def chain(length: int, kinds: int) -> Graph:
    """Stages of `kinds` nodes, each of which needs the stage before and tells which it was."""
    actions: list[Action] = [GO]
    for stage in range(length):
        needs: Conditions = {f"text{stage - 1}": TEXT} if stage else {"passage": TEXT}
        for kind in range(kinds):
            gives = {f"text{stage}": at_least(10 * kind), f"kind{stage}": one_of(str(kind))}
            actions.append(acts(f"s{stage}/k{kind}", needs, gives))
    actions.append(acts("end", {f"text{length - 1}": TEXT}, {"done": TEXT}))
    return Graph.build("chain", actions, "go", "end")


def test_facts_that_no_later_node_looks_at_multiply_nothing() -> None:
    graph = chain(8, 9)
    assert graph.count_walks() == 9**8
    assert states(graph) == 1 + 8 + 1 + 1


def test_facts_merged_away_are_promised_all_the_same() -> None:
    graph = chain(3, 4)
    assert graph.postconditions["kind0"] == one_of("0", "1", "2", "3")
    assert graph.postconditions["text2"] == Shape(str)
    assert graph.space.end is not None
    assert graph.known(graph.space.end)["kind2"] == one_of("0", "1", "2", "3")


def test_what_only_some_walks_bring_to_a_state_may_be_absent_there() -> None:
    one = acts("one", {}, {"a": TEXT, "note": TEXT})
    other = acts("other", {}, {"a": TEXT})
    end = acts("end", {"a": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, one, other, end], "go", "end")
    assert graph.space.end is not None
    assert graph.known(graph.space.end)["note"] == Shape(str, maybe=True)
    assert "note" not in graph.postconditions


def test_shapes_that_meet_the_same_needs_are_one() -> None:
    writers = [acts(f"w{n}", {}, {"text": at_least(n)}) for n in range(100)]
    short = acts("short", {"text": at_least(20)}, {"q": TEXT})
    long = acts("long", {"text": at_least(60)}, {"q": TEXT})
    end = acts("end", {"q": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, *writers, short, long, end], "go", "end")
    assert states(graph) == 1 + 1 + 2 + 1 + 1
    assert graph.count_walks() == 40 + 40 * 2


def test_a_fact_is_kept_for_as_long_as_a_later_node_needs_it() -> None:
    kinds = [acts(f"kind/{n}", {}, {"kind": one_of(str(n))}) for n in range(3)]
    asks = [acts(f"ask/{n}", {"kind": TEXT}, {"q": TEXT}) for n in range(2)]
    ends = [acts("end", {"kind": one_of("1"), "q": TEXT}, {"done": TEXT})]
    graph = Graph.build("g", [GO, *kinds, *asks, *ends], "go", "end")
    assert {walk[1] for walk in graph.walks(9)} == {"kind/1"}


def test_a_field_that_may_be_dropped_and_written_again_is_not_forgotten() -> None:
    actions: list[Action] = [
        GO,
        acts("draft", {}, {"draft": TEXT}),
        acts("bin", {"draft": TEXT}, {"draft": None}),
        acts("keep", {"draft": TEXT}, {"kept": TEXT}),
        acts("end", {"draft": None}, {"done": TEXT}),
    ]
    graph = Graph.build("g", actions, "go", "end")
    assert graph.walks(9) == (
        ("go", "end"),
        ("go", "draft", "bin", "end"),
        ("go", "draft", "keep", "bin", "end"),
    )


@dataclass(frozen=True)
class Mark:
    name: str


def test_marks_are_conditions_like_any_other() -> None:
    plain, cited = at_least(10), Shape(str, min_len=10, marks=frozenset({Mark("cited")}))
    actions: list[Action] = [
        GO,
        acts("a", {}, {"text": plain}),
        acts("b", {}, {"text": cited}),
        acts("end", {"text": Shape(str, marks=frozenset({Mark("cited")}))}, {"done": TEXT}),
    ]
    assert Graph.build("g", actions, "go", "end").walks(9) == (("go", "b", "end"),)


def test_many_optional_nodes_explode_with_advice_and_nest_without() -> None:
    flags = [acts(f"flag{n}", {}, {f"f{n}": TEXT}) for n in range(12)]
    end = acts("end", {}, {"done": TEXT})
    with pytest.raises(TooManyStates, match="a few in each, since all in one are as many again"):
        Graph.build("wide", [GO, *flags, end], "go", "end", max_states=1_000)
    inner = Graph.build("flags", [GO, *flags[:6], end], "go", "end")
    more = Graph.build("more", [gate("on", {}), *flags[6:], acts("off", {}, {})], "on", "off")
    outer = Graph.build(
        "outer", [gate("in", {"passage": at_least(500)}), inner, more], "in", "more"
    )
    assert outer.count_walks() == (inner.count_walks() + 1) * more.count_walks()


class TestOneNodeMore:
    def test_it_joins_with_its_edges(self) -> None:
        graph = Graph.build("g", [GO, acts("end", {"passage": TEXT}, {"a": TEXT})], "go", "end")
        grown = graph.with_node(acts("aside", {"passage": TEXT}, {"b": TEXT}))
        assert grown.walks(9) == (("go", "end"), ("go", "aside", "end"))

    def test_one_that_fits_nowhere_lies_idle_or_is_refused_where_it_is_named(self) -> None:
        graph = chain(2, 2)
        lost = acts("lost", {"nothing": TEXT}, {"b": TEXT})
        assert graph.with_node(lost).idle == (lost,)
        with pytest.raises(NodeOnNoWalk, match="nothing: needs str"):
            graph.with_node(lost, named=True)

    def test_a_name_it_shares_or_a_line_it_cannot_join_is_refused(self) -> None:
        with pytest.raises(DuplicateName):
            chain(2, 2).with_node(acts("s0/k0", {}, {}))
        with pytest.raises(GraphError, match="a line of steps"):
            Graph.line("l", [GO], {}).with_node(acts("x", {}, {}))


def told(graph: Graph) -> list[object]:
    """All that a graph says of itself."""
    return [
        graph.nodes,
        graph.idle,
        graph.why_idle(),
        graph.edges(),
        graph.count_walks(),
        graph.walks(50),
        (graph.shortest(), graph.longest()),
        graph.preconditions,
        graph.postconditions,
        graph.roles,
        graph.digest,
        graph.space.arcs,
    ]


@given(libraries())
def test_a_graph_with_one_node_more_is_what_a_fresh_build_gives(actions: list[Action]) -> None:
    source, *between, target = actions
    for last in between:
        fewer = [action for action in actions if action is not last]
        try:
            before = Graph.build("random", fewer, source.name, target.name)
        except Unreachable:
            continue
        fresh = Graph.build("random", actions, source.name, target.name)
        assert told(before.with_node(last)) == told(fresh)


def test_growing_a_layered_graph_node_by_node_ends_where_a_build_does() -> None:
    graph = chain(5, 3)
    extra: list[Action] = []
    for stage in (4, 0, 2):
        needs: Conditions = {f"text{stage - 1}": at_least(10)} if stage else {"passage": TEXT}
        extra.append(acts(f"s{stage}/new", needs, {f"text{stage}": at_least(15)}))
        graph = graph.with_node(extra[-1])
    assert graph.origin is not None
    actions = sorted(graph.origin.exploration.needs.actions, key=lambda action: action.name)
    fresh = Graph.build("chain", actions, "go", "end")
    assert told(graph) == told(fresh)
