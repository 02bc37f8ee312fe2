from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given

from dataforge.errors import (
    DeclarationError,
    DuplicateName,
    GraphError,
    NodeOnNoWalk,
    TooManyStates,
    UnreachableTarget,
)
from dataforge.plan.action import Action
from dataforge.plan.graph import Edge, Graph
from dataforge.plan.node import gate
from dataforge.plan.shape import Conditions, Shape
from dataforge.plan.struct import breach
from tests.plan import brute
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, at_least, one_of

GATE = gate("seed/gate", {"passage": at_least(500)})
FORMS = ("dialogue", "rap", "wiki")


def transform(form: str, length: int = 100) -> Action:
    return acts(
        f"transform/{form}",
        {"passage": at_least(500)},
        {"text": at_least(length), "form": one_of(form)},
    )


ASK = acts("ask", {"text": at_least(100), "form": one_of(*FORMS)}, {"question": TEXT})
ANSWER = acts("answer", {"text": TEXT, "question": TEXT}, {"answer": TEXT})
JUDGE = acts("judge", {"question": TEXT, "answer": TEXT}, {"score": Shape(float, low=0, high=1)})
PARTS = [GATE, transform("rap"), transform("wiki", 200), ASK, ANSWER, JUDGE]


def qa(*more: Action, named: tuple[str, ...] = ()) -> Graph:
    return Graph.build("qa", [*PARTS, *more], "seed/gate", "judge", named=named)


class TestWalks:
    def test_nodes_writing_one_field_exclude_each_other(self) -> None:
        assert qa().walks(9) == (
            ("seed/gate", "transform/rap", "ask", "answer", "judge"),
            ("seed/gate", "transform/wiki", "ask", "answer", "judge"),
        )
        assert qa().count_walks() == 2

    def test_a_node_added_to_those_matched_adds_its_walks_and_edges_by_itself(self) -> None:
        before, after = qa(), qa(transform("dialogue"))
        assert after.count_walks() == before.count_walks() + 1
        assert set(after.edges()) - set(before.edges()) == {
            Edge("seed/gate", "transform/dialogue", "tight"),
            Edge("transform/dialogue", "ask", "tight"),
        }
        assert set(before.edges()) < set(after.edges())

    def test_the_source_is_the_only_choice_at_the_start_and_nothing_follows_the_target(
        self,
    ) -> None:
        graph = qa()
        ((action, state),) = graph.choices(graph.start)
        assert action is GATE
        while choices := graph.choices(state):
            names = [action.name for action, _ in choices]
            assert names == sorted(names)
            state = choices[-1][1]
        assert graph.known(state)["score"] == Shape(float, low=0, high=1)

    def test_a_node_that_needs_two_others_waits_for_both(self) -> None:
        both = acts("both", {"x": TEXT, "y": TEXT}, {"z": TEXT})
        one, two = acts("a", {}, {"x": TEXT}), acts("b", {}, {"y": TEXT})
        actions: list[Action] = [GATE, one, two, both]
        graph = Graph.build("join", actions, "seed/gate", "both")
        assert graph.walks(9) == (("seed/gate", "a", "b", "both"), ("seed/gate", "b", "a", "both"))
        assert Edge("a", "both", "carried") in graph.edges()

    def test_a_fact_persists_through_nodes_that_do_not_touch_it(self) -> None:
        late = acts("late", {"question": TEXT, "passage": at_least(500)}, {"end": TEXT})
        graph = Graph.build("frame", [*PARTS, late], "seed/gate", "late")
        assert graph.shortest() == 4

    def test_a_dropped_field_is_gone_and_may_be_written_again(self) -> None:
        draft = acts("draft", {"passage": TEXT}, {"draft": TEXT})
        tidy = acts("tidy", {"draft": TEXT}, {"draft": None, "clean": TEXT})
        end = acts("end", {"clean": TEXT, "draft": None}, {"done": TEXT})
        graph = Graph.build("drop", [GATE, draft, tidy, end], "seed/gate", "end")
        assert graph.walks(9) == (("seed/gate", "draft", "tidy", "end"),)
        assert "draft" not in graph.postconditions

    def test_a_rewriter_runs_at_most_once(self) -> None:
        polish = acts("polish", {"text": TEXT}, {"text": at_least(150)})
        lengths = {len(walk) for walk in qa(polish).walks(99)}
        assert lengths == {5, 6}
        assert all(walk.count("polish") < 2 for walk in qa(polish).walks(99))

    def test_two_nodes_that_undo_each_other_do_not_loop(self) -> None:
        writes = acts("writes", {}, {"flag": TEXT})
        drops = acts("drops", {"flag": TEXT}, {"flag": None})
        end = acts("end", {}, {"done": TEXT})
        graph = Graph.build("undo", [GATE, writes, drops, end], "seed/gate", "end")
        assert graph.count_walks() == 3
        assert graph.longest() == 4

    def test_what_may_be_absent_satisfies_no_need_of_it_nor_of_its_absence(self) -> None:
        maybe = acts("maybe", {}, {"note": Shape(str, maybe=True)})
        needs = acts("needs", {"note": TEXT}, {"done": TEXT})
        lacks = acts("lacks", {"note": None}, {"done": TEXT})
        either = acts("either", {"note": Shape(str, maybe=True)}, {"done": TEXT})
        assert Graph.build("maybe", [GATE, maybe, either], "seed/gate", "either").count_walks() == 2
        with pytest.raises(UnreachableTarget):
            Graph.build("maybe", [GATE, maybe, needs], "seed/gate", "needs")
        only = Graph.build("maybe", [GATE, maybe, lacks], "seed/gate", "lacks")
        assert [action.name for action in only.idle] == ["maybe"]

    def test_a_single_node_can_be_source_and_target(self) -> None:
        graph = Graph.build("one", [GATE], "seed/gate", "seed/gate")
        assert graph.walks(9) == (("seed/gate",),)
        assert (graph.count_walks(), graph.shortest(), graph.longest()) == (1, 1, 1)

    def test_counts_are_exact_however_large(self) -> None:
        kinds = range(10)
        actions: list[Action] = [GATE]
        for stage in range(25):
            needs: Conditions = {f"f{stage - 1}": TEXT} if stage else {"passage": TEXT}
            actions += [acts(f"s{stage}/n{kind}", needs, {f"f{stage}": TEXT}) for kind in kinds]
        actions.append(acts("end", {"f24": TEXT}, {"done": TEXT}))
        graph = Graph.build("many", actions, "seed/gate", "end")
        assert graph.count_walks() == 10**25
        assert len(graph.walks(3)) == 3


class TestEdges:
    def test_an_edge_is_tight_where_the_promise_alone_is_enough(self) -> None:
        kinds = {(edge.before, edge.after): edge.kind for edge in qa().edges()}
        assert kinds["transform/rap", "ask"] == "tight"
        assert kinds["answer", "judge"] == "carried"
        assert ("transform/rap", "transform/wiki") not in kinds

    def test_a_gate_promises_what_it_asks_for(self) -> None:
        assert Edge("seed/gate", "transform/rap", "tight") in qa().edges()


class TestPromises:
    def test_a_graph_promises_the_join_over_its_walks(self) -> None:
        graph = qa()
        assert graph.preconditions == {"passage": at_least(500)}
        assert graph.postconditions["form"] == one_of("rap", "wiki")
        assert graph.postconditions["text"] == at_least(100)
        assert "passage" not in graph.postconditions

    def test_a_field_left_by_some_walks_only_is_no_promise(self) -> None:
        hint = acts("hint", {"question": TEXT}, {"hint": TEXT})
        graph = qa(hint)
        assert "hint" in {action.name for action in graph.nodes}
        assert "hint" not in graph.postconditions

    def test_what_its_writer_declares_optional_is_promised_as_optional(self) -> None:
        end = acts("end", {"score": Shape(float)}, {"note": Shape(str, maybe=True)})
        graph = Graph.build("qa", [*PARTS, end], "seed/gate", "end")
        assert graph.postconditions["note"] == Shape(str, maybe=True)

    def test_an_entry_field_gone_after_every_walk_is_promised_gone(self) -> None:
        end = acts("end", {"passage": TEXT}, {"passage": None, "done": TEXT})
        graph = Graph.build("gone", [GATE, end], "seed/gate", "end")
        assert graph.postconditions == {"passage": None, "done": TEXT}

    def test_a_graph_is_a_node_of_another(self) -> None:
        end = acts("end", {"answer": TEXT, "score": Shape(float, low=-1)}, {"messages": TEXT})
        outer = Graph.build(
            "outer", [gate("go", {"passage": at_least(600)}), qa(), end], "go", "end"
        )
        assert outer.walks(9) == (("go", "qa", "end"),)
        assert outer.nodes[2] is not None

    def test_a_graph_that_holds_itself_is_refused(self) -> None:
        inner = qa().renamed("outer")
        with pytest.raises(GraphError, match="graph 'outer' holds itself, in node 'outer'"):
            Graph.build("outer", [GATE, inner], "seed/gate", "outer")

    def test_roles_are_those_of_the_nodes_on_some_walk(self) -> None:
        hint = acts("hint", {"question": TEXT}, {"hint": TEXT}, roles={"writer": "model"})
        idle = acts("idle", {"nothing": TEXT}, {"x": TEXT}, roles={"poet": "model"})
        assert qa(hint, idle).roles == {"writer": "model"}
        clash = acts("clash", {"question": TEXT}, {"y": TEXT}, roles={"writer": "judge"})
        with pytest.raises(DeclarationError, match="role 'writer'"):
            qa(hint, clash)


class TestDigest:
    def test_it_is_stable_and_does_not_depend_on_order(self) -> None:
        again = Graph.build("qa", PARTS[::-1], "seed/gate", "judge")
        assert qa().digest == again.digest

    def test_it_changes_with_a_node_on_a_walk_but_not_with_an_idle_one(self) -> None:
        idle = acts("idle", {"nothing": TEXT}, {"x": TEXT})
        assert qa(idle).digest == qa().digest
        assert qa(transform("dialogue")).digest != qa().digest


class TestRefusals:
    def test_two_nodes_of_one_name_are_refused(self) -> None:
        with pytest.raises(DuplicateName, match="more than one node is named 'ask'"):
            qa(ASK)

    def test_a_missing_source_names_the_nearest(self) -> None:
        with pytest.raises(
            GraphError, match="its target, 'jugde', is not among its nodes; did you mean 'judge'"
        ):
            Graph.build("qa", PARTS, "seed/gate", "jugde")

    def test_a_node_named_outright_must_be_on_a_walk(self) -> None:
        riddle = acts("riddle", {"text": at_least(900)}, {"question": TEXT})
        with pytest.raises(NodeOnNoWalk, match="riddle never runs"):
            qa(riddle, named=("riddle",))
        assert [action.name for action in qa(riddle).idle] == ["riddle"]

    def test_too_many_states_name_the_fields_that_multiply_them(self) -> None:
        flags = [acts(f"flag{n}", {}, {f"f{n}": TEXT}) for n in range(12)]
        kinds = [acts(f"kind{n}", {}, {"kind": one_of(str(n))}) for n in range(5)]
        reads = [acts(f"read{n}", {"kind": one_of(str(n))}, {"read": TEXT}) for n in range(5)]
        end = acts("end", {}, {"done": TEXT})
        actions: list[Action] = [GATE, *flags, *kinds, *reads, end]
        with pytest.raises(TooManyStates, match=r"kind \(7 different\).*graphs of their own"):
            Graph.build("wide", actions, "seed/gate", "end", max_states=500)


class TestDeadEnds:
    def test_a_dead_end_is_never_entered(self) -> None:
        dead = acts("transform/limerick", {"passage": TEXT}, {"text": at_least(10), "form": TEXT})
        graph = qa(dead)
        assert [action.name for action in graph.idle] == ["transform/limerick"]
        draw = random.Random(7)
        for _ in range(200):
            state = graph.start
            while choices := graph.choices(state):
                action, state = draw.choice(choices)
                assert action.name != "transform/limerick"
            assert state == graph.space.end

    def test_a_choice_that_leads_on_only_sometimes_is_open_only_then(self) -> None:
        actions: list[Action] = [
            gate("go", {"s": TEXT}),
            acts("kind/a", {"s": TEXT}, {"kind": one_of("a")}),
            acts("kind/b", {"s": TEXT}, {"kind": one_of("b")}),
            acts("extra", {"kind": one_of("a", "b")}, {"extra": TEXT}),
            acts("end/a", {"kind": one_of("a")}, {"done": TEXT}),
        ]
        graph = Graph.build("sometimes", actions, "go", "end/a")
        assert {name for walk in graph.walks(9) for name in walk} == {
            "go",
            "kind/a",
            "extra",
            "end/a",
        }


@given(libraries())
def test_the_walks_are_exactly_those_of_brute_force_over_concrete_records(
    actions: list[Action],
) -> None:
    expected = brute.walks(actions[1:], actions[0], actions[-1])
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        assert not expected
        return
    assert graph.count_walks() == len(expected)
    assert graph.walks(len(expected) + 1) == tuple(
        sorted(expected, key=lambda walk: (len(walk), walk))
    )
    assert graph.shortest() == min(map(len, expected))
    assert graph.longest() == max(map(len, expected))
    pairs = {pair for walk in expected for pair in pairwise(walk)}
    assert {(edge.before, edge.after) for edge in graph.edges()} == pairs


@given(libraries())
def test_what_a_graph_promises_holds_after_every_walk(actions: list[Action]) -> None:
    try:
        graph = Graph.build("random", actions, "source", "target")
    except UnreachableTarget:
        return
    for records in brute.walks(actions[1:], actions[0], actions[-1]).values():
        for record in records:
            assert breach(graph.postconditions, dict(record)) is None
