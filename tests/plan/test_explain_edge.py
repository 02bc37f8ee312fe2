"""An edge, or that there is none, is explained field by field off a walk that can be taken."""

from __future__ import annotations

import pytest
from hypothesis import given

from dataforge.errors import UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.explain_edge import EdgeWhy, why_edge
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from dataforge.plan.shape import Shape, entails
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, at_least, one_of

GO = gate("go", {"passage": at_least(500)})
RAP = acts("rap", {"passage": TEXT}, {"text": at_least(100), "form": one_of("rap")})
WIKI = acts("wiki", {"passage": TEXT}, {"text": at_least(200), "form": one_of("wiki")})
ASK = acts("ask", {"text": at_least(150), "passage": TEXT}, {"question": TEXT})
QUIZ = acts("quiz", {"form": one_of("rap")}, {"question": TEXT})
END = acts("end", {"question": TEXT}, {"done": TEXT})
GRAPH = Graph.build("qa", [GO, RAP, WIKI, ASK, QUIZ, END], "go", "end")


def lines(why: EdgeWhy) -> list[str]:
    return [str(need) for need in why.needs]


def test_a_tight_edge_says_that_the_promise_is_enough() -> None:
    why = why_edge(GRAPH, "rap", "quiz")
    assert (why.kind, why.walk) == ("tight", ("go", "rap"))
    assert why.reason == "what rap promises is all that quiz needs to be there"
    assert lines(why) == [
        "question: must be absent, for it is written here; is absent",
        "form: needs 'rap'; is 'rap', by rap",
    ]


def test_a_carried_edge_says_which_earlier_node_gave_what() -> None:
    why = why_edge(GRAPH, "wiki", "ask")
    assert why.kind == "carried"
    assert lines(why)[1:] == [
        "text: needs str of at least 150 characters; is str of at least 200 characters, by wiki",
        "passage: needs str; is str of at least 500 characters",
    ]


def test_a_missing_edge_says_which_field_falls_short_and_who_could_give_it() -> None:
    why = why_edge(GRAPH, "rap", "ask")
    assert (why.kind, why.reason) == (None, "at best, ask lacks this after rap")
    assert [need.field for need in why.needs if need.lacking] == ["text"]
    assert lines(why)[1] == (
        "text: needs str of at least 150 characters, has str of at least 100 characters; "
        "given by wiki"
    )


def test_two_that_write_one_field_exclude_each_other() -> None:
    why = why_edge(GRAPH, "rap", "wiki")
    assert why.kind is None
    assert "(wiki would overwrite it)" in lines(why)[0]


def test_the_ends_have_edges_on_one_side_only() -> None:
    assert why_edge(GRAPH, "end", "rap").reason == "end is the target, the end of all walks"
    assert why_edge(GRAPH, "rap", "go").reason == "go is the source, where walks begin"


def test_a_node_on_no_walk_is_explained_as_such() -> None:
    idle = acts("idle", {"mood": TEXT}, {"x": TEXT})
    graph = GRAPH.with_node(idle)
    assert "mood: needs str" in why_edge(graph, "idle", "end").reason
    assert lines(why_edge(graph, "rap", "idle"))[1].startswith("mood: needs str, has nothing")


def test_a_dead_end_is_no_edge_though_every_need_is_met() -> None:
    dead = acts("dead", {"form": TEXT}, {"question": Shape(int)})
    why = why_edge(GRAPH.with_node(dead), "rap", "dead")
    assert why.kind is None
    assert why.reason == "dead could run there, but no walk leads on from it to end"


def test_what_has_run_by_then_runs_no_more() -> None:
    first = acts("first", {}, {"question": TEXT})
    trim = acts("trim", {"question": TEXT}, {"question": at_least(10)})
    check = acts("check", {"question": at_least(10)}, {"checked": TEXT})
    last = acts("last", {"checked": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, first, trim, check, last], "go", "last")
    why = why_edge(graph, "check", "trim")
    assert why.kind is None
    assert why.reason == "trim has run by then on every walk, and no node runs twice"


def test_alternatives_are_not_said_to_have_run_on_every_walk() -> None:
    asks = [acts(f"ask/{each}", {"passage": TEXT}, {"question": TEXT}) for each in "bc"]
    then = acts("then", {"question": TEXT}, {"done": TEXT})
    graph = Graph.build("g", [GO, *asks, then, acts("end", {"done": TEXT}, {})], "go", "end")
    reasons = [why_edge(graph, "then", f"ask/{each}").reason for each in "bc"]
    assert reasons == [f"at best, ask/{each} lacks this after then" for each in "bc"]


@given(libraries())
def test_the_explanation_agrees_with_the_edges_for_every_pair(actions: list[Action]) -> None:
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        return
    kinds = {(edge.before, edge.after): edge.kind for edge in graph.edges()}
    for one in actions:
        for other in actions:
            why = why_edge(graph, one.name, other.name)
            assert why.kind == kinds.get((one.name, other.name))
            for need in why.needs:
                assert (need.lacking is None) == entails(need.have, need.want)
            if why.kind:
                assert why.walk[-1] == one.name
                assert all(need.lacking is None for need in why.needs)


def test_an_action_of_another_graph_is_no_question_of_this_one() -> None:
    with pytest.raises(KeyError):
        why_edge(GRAPH, "rap", "nobody")
