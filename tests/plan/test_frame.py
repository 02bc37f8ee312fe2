"""What persists, what is gone, and that no walk loops or ends before its target.

Each case of the frame is one that the naive reading gets wrong: that B can follow A whenever what A
promises entails what B needs, or when B's needs are met by nobody in particular.
"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings

from dataforge.errors import DeclarationError, GraphError, UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import loop
from dataforge.plan.node import gate
from dataforge.plan.shape import Known, Shape, missing
from dataforge.plan.space import entry
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, at_least, one_of

GO = gate("go", {"passage": at_least(500)})
RAP = acts("rap", {"passage": TEXT}, {"text": at_least(100), "form": one_of("rap")})
WIKI = acts("wiki", {"passage": TEXT}, {"text": at_least(300), "form": one_of("wiki")})
MAYBE = Shape(str, maybe=True)


def naive(before: Action, after: Action) -> bool:
    """Whether A's own postconditions entail B's preconditions, as written."""
    promised = before.postconditions or before.preconditions
    return not missing(entry(promised), after.preconditions)


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(edge.before, edge.after) for edge in graph.edges()}


def test_frame_a_fact_persists_past_nodes_that_do_not_touch_it() -> None:
    ask = acts("ask", {"text": TEXT}, {"question": TEXT})
    end = acts("end", {"question": TEXT, "passage": at_least(500)}, {"done": TEXT})
    graph = Graph.build("g", [GO, RAP, ask, end], "go", "end")
    assert ("ask", "end") in edges(graph)
    assert not naive(ask, end)


def test_frame_a_join_needs_facts_of_two_nodes() -> None:
    one, two = acts("one", {}, {"x": TEXT}), acts("two", {}, {"y": TEXT})
    both = acts("both", {"x": TEXT, "y": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, one, two, both], "go", "both")
    assert {("one", "both"), ("two", "both")} <= edges(graph)
    assert not naive(one, both)
    assert not naive(two, both)


def test_delete_a_dropped_field_is_gone_for_those_that_need_it() -> None:
    tidy = acts("tidy", {"text": TEXT}, {"text": None, "clean": TEXT})
    read = acts("read", {"clean": TEXT}, {"read": TEXT})
    late = acts("late", {"text": TEXT, "read": TEXT}, {"done": TEXT})
    end = acts("end", {"read": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, RAP, tidy, read, late, end], "go", "end")
    assert naive(RAP, tidy)
    assert [action.name for action in graph.idle] == ["late"]


def test_negative_a_need_of_absence_fails_once_the_field_is_there() -> None:
    note = acts("note", {}, {"note": TEXT})
    fresh = acts("fresh", {"note": None}, {"question": TEXT})
    end = acts("end", {"question": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, note, fresh, end], "go", "end")
    assert ("note", "fresh") not in edges(graph)
    assert ("note", "end") in edges(graph)
    assert naive(GO, fresh)
    assert all(
        walk.index("fresh") < walk.index("note") for walk in graph.walks(9) if "note" in walk
    )


def test_negative_what_may_be_there_is_not_known_to_be_absent() -> None:
    hint = acts("hint", {}, {"hint": MAYBE})
    fresh = acts("fresh", {"hint": None}, {"done": TEXT})
    graph = Graph.build("g", [GO, hint, fresh], "go", "fresh")
    assert [action.name for action in graph.idle] == ["hint"]


def test_implied_absence_two_writers_of_one_field_exclude_each_other() -> None:
    end = acts("end", {"form": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, RAP, WIKI, end], "go", "end")
    assert graph.count_walks() == 2
    assert ("rap", "wiki") not in edges(graph)
    # RAP's needs are met wherever the passage is, so a reading without write-once runs both.
    assert naive(GO, RAP)
    assert not missing(entry({**RAP.postconditions, "passage": TEXT}), WIKI.preconditions)


def test_implied_absence_holds_for_what_may_have_been_written() -> None:
    hint = acts("hint", {}, {"hint": MAYBE})
    again = acts("again", {}, {"hint": TEXT})
    end = acts("end", {"hint": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, hint, again, end], "go", "end")
    assert graph.walks(9) == (("go", "again", "end"),)


def test_overwrite_a_rewriter_replaces_what_was_known() -> None:
    trim = acts("trim", {"text": at_least(300)}, {"text": Shape(str, max_len=50)})
    long = acts("long", {"text": at_least(200)}, {"read": TEXT})
    end = acts("end", {"text": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, WIKI, trim, long, end], "go", "end")
    assert ("trim", "long") not in edges(graph)
    assert ("long", "trim") in edges(graph)
    assert not naive(long, trim)
    walks = graph.walks(99)
    assert ("go", "wiki", "long", "trim", "end") in walks
    assert not any("trim" in walk and "long" in walk[walk.index("trim") :] for walk in walks)


def test_overwrite_the_later_choice_is_the_one_that_counts() -> None:
    recast = acts("recast", {"form": one_of("rap")}, {"form": one_of("song")})
    sing = acts("sing", {"form": one_of("song")}, {"done": TEXT})
    rap = acts("perform", {"form": one_of("rap")}, {"stage": TEXT})
    graph = Graph.build("g", [GO, RAP, recast, rap, sing], "go", "sing")
    assert ("recast", "perform") not in edges(graph)
    assert ("perform", "recast") in edges(graph)
    assert not naive(rap, recast)


WAYS_TO_LOOP: list[list[Action]] = [
    [acts("a", {}, {"x": TEXT}), acts("b", {"x": TEXT}, {"x": None})],
    [acts("a", {"p": TEXT}, {"p": at_least(9)}), acts("b", {"p": TEXT}, {"p": TEXT})],
    [acts("a", {"x": MAYBE}, {"x": TEXT}), acts("b", {"x": MAYBE}, {"x": MAYBE})],
    [acts("a", {"x": None}, {"y": TEXT, "x": None}), acts("b", {"y": TEXT}, {"y": None})],
    [acts(f"n{n}", {}, {}) for n in range(4)],
    [acts(f"swap{n}", {"k": one_of(n, 1 - n)}, {"k": one_of(1 - n)}) for n in range(2)],
    [acts("a", {}, {"x": None}), acts("b", {}, {"x": TEXT}), acts("c", {"x": TEXT}, {"x": None})],
]


def assert_acyclic(graph: Graph) -> None:
    order = {state: place for place, state in enumerate(graph.space.last_first())}
    for state, arcs in graph.space.arcs.items():
        assert all(order[reached] < order[state] for _, reached in arcs)
    for walk in graph.walks(500):
        assert len(walk) == len(set(walk))


@pytest.mark.parametrize("parts", WAYS_TO_LOOP)
def test_no_set_of_nodes_makes_a_walk_loop(parts: list[Action]) -> None:
    source = acts("source", {"p": TEXT}, {"k": one_of(0, 1)})
    graph = Graph.build("g", [source, *parts, acts("end", {}, {})], "source", "end")
    assert_acyclic(graph)
    assert {walk[-1] for walk in graph.walks(500)} == {"end"}


@given(libraries())
def test_no_random_library_makes_a_walk_loop(actions: list[Action]) -> None:
    try:
        assert_acyclic(Graph.build("random", actions, "source", "target"))
    except UnreachableTarget:
        return


def test_a_graph_inside_itself_is_refused_also_by_way_of_a_loop_or_another_graph() -> None:
    end = acts("end", {"form": TEXT}, {"done": TEXT})
    inner = Graph.build("outer", [GO, RAP, end], "go", "end")
    middle = Graph.build("middle", [GO, inner], "go", "outer")
    tried = loop("tried", [inner], until={"done": TEXT}, at_most=2)
    for holder in (inner, middle, tried):
        with pytest.raises((GraphError, DeclarationError), match="holds itself"):
            Graph.build("outer", [GO, holder], "go", holder.name)


@settings(max_examples=200)
@given(libraries())
def test_what_is_open_at_a_state_is_what_a_walk_there_allows(actions: list[Action]) -> None:
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        return
    by_name = {action.name: action for action in actions}
    for walk in graph.walks(50):
        known: Known = entry(graph.preconditions)
        for before, after in pairwise(walk):
            known = by_name[before].after(known)
            assert not missing(known, by_name[after].requires)


def random_library(draw: random.Random) -> list[Action]:
    """Layers of nodes with choices that only some later nodes take, drops and rewriters."""
    actions: list[Action] = [GO]
    for layer in range(4):
        field, before = f"f{layer}", f"f{layer - 1}" if layer else "passage"
        for number in range(draw.randint(1, 5)):
            needs: dict[str, Shape | None] = {before: TEXT}
            if layer and draw.random() < 0.6:
                needs[before] = one_of(*draw.sample("abcd", draw.randint(1, 3)))
            if draw.random() < 0.2:
                needs[f"f{draw.randrange(4)}"] = None
            gives: dict[str, Shape | None] = {field: one_of(draw.choice("abcd"))}
            if draw.random() < 0.2:
                gives[f"f{draw.randrange(4)}"] = None
            if draw.random() < 0.2:
                gives["note"] = draw.choice([TEXT, MAYBE])
            actions.append(acts(f"n{layer}/{number}", needs, gives))
    return [*actions, acts("end", {"f3": one_of(*draw.sample("abcd", 2))}, {"done": TEXT})]


def test_of_ten_thousand_random_walks_on_random_graphs_none_fails_to_reach_the_target() -> None:
    draw = random.Random(11)
    walked = graphs = dead = 0
    while walked < 10_000:
        try:
            graph = Graph.build("random", random_library(draw), "go", "end")
        except UnreachableTarget:
            continue
        graphs += 1
        dead += len(graph.idle)
        by_name = {action.name: action for action in graph.nodes}
        for _ in range(50):
            state, last = graph.start, ""
            known: Known = entry(graph.preconditions)
            while choices := graph.choices(state):
                action, state = draw.choice(choices)
                assert not missing(known, action.requires)
                known, last = by_name[action.name].after(known), action.name
            assert last == "end"
            walked += 1
    # The libraries do hold dead ends to be entered.
    assert graphs >= 200
    assert dead > 100
