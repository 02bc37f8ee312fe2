from __future__ import annotations

from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.judged import judged_roles
from dataforge.plan.loop import loop
from dataforge.plan.node import gate
from tests.plan.scene import TEXT, acts, one_of

VERDICT = one_of("pass", "fail")
ASK = acts("ask", {"passage": TEXT}, {"question": TEXT}, roles={"writer": "model"})
ANSWER = acts("answer", {"question": TEXT}, {"answer": TEXT}, roles={"answerer": "model"})
JUDGE = acts(
    "judge", {"answer": TEXT}, {"verdict": VERDICT}, roles={"judge": "judge"}, judges="answer"
)
TRIED = loop("tried", [ANSWER, JUDGE], until={"verdict": one_of("pass")}, at_most=2)


def test_a_judge_is_paired_with_the_writers_of_what_it_judges() -> None:
    assert judged_roles(TRIED) == {("judge", "answerer")}


def test_pairs_are_found_through_loops_and_nested_graphs() -> None:
    end = acts("end", {"answer": TEXT}, {"messages": TEXT})
    inner = Graph.build("in", [gate("go", {"passage": TEXT}), ASK, TRIED, end], "go", "end")
    last = acts("last", {"messages": TEXT}, {"done": TEXT})
    outer = Graph.build("out", [gate("a", {"passage": TEXT}), inner, last], "a", "last")
    assert judged_roles(outer) == {("judge", "answerer")}


def test_a_judge_that_is_a_model_itself_counts_under_its_own_role() -> None:
    judge = acts(
        "judge",
        {"question": TEXT, "answer": TEXT},
        {"verdict": VERDICT},
        roles={"critic": "model"},
        judges="question",
    )
    end = acts("end", {"verdict": VERDICT}, {"done": TEXT})
    actions: list[Action] = [gate("go", {"passage": TEXT}), ASK, ANSWER, judge, end]
    graph = Graph.build("g", actions, "go", "end")
    assert judged_roles(graph) == {("critic", "writer")}


def test_without_a_judge_there_are_no_pairs() -> None:
    assert judged_roles(ANSWER) == frozenset()


def test_words_are_traced_through_nodes_that_only_rework_them() -> None:
    draft = acts("draft", {"question": TEXT}, {"draft": TEXT}, roles={"answerer": "model"})
    tidy = acts("tidy", {"draft": TEXT}, {"tidied": TEXT})
    polish = acts("polish", {"tidied": TEXT}, {"answer": TEXT})
    end = acts("end", {"verdict": VERDICT}, {"done": TEXT})
    actions: list[Action] = [gate("go", {"question": TEXT}), draft, tidy, polish, JUDGE, end]
    assert judged_roles(Graph.build("g", actions, "go", "end")) == {("judge", "answerer")}


def test_nodes_that_rework_each_others_words_end_the_trace() -> None:
    there = acts("there", {"answer": TEXT}, {"echo": TEXT})
    back = acts("back", {"echo": TEXT}, {"answer": TEXT, "echo": None})
    actions: list[Action] = [gate("go", {"echo": TEXT}), back, JUDGE, there]
    end = acts("end", {"verdict": VERDICT, "echo": TEXT}, {"done": TEXT})
    assert judged_roles(Graph.build("g", [*actions, end], "go", "end")) == frozenset()
