from __future__ import annotations

import pytest

from dataforge.errors import NodeOnNoWalk, UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate
from dataforge.plan.shape import Shape
from tests.plan.scene import TEXT, acts, at_least, one_of

GATE = gate("gate", {"passage": at_least(500)})
RAP = acts("rap", {"passage": TEXT}, {"text": at_least(100), "form": one_of("rap")})
WIKI = acts("wiki", {"passage": TEXT}, {"text": at_least(150), "form": one_of("wiki")})
END = acts("end", {"text": TEXT}, {"done": TEXT})


def why(*more: Action, target: Action = END) -> str:
    """What is said of the one node that is on no walk."""
    graph = Graph.build("g", [GATE, RAP, WIKI, target, *more], "gate", target.name)
    (reason,) = graph.why_idle().values()
    return reason


def test_the_nearest_miss_of_a_length_has_numbers_and_who_comes_closest() -> None:
    assert why(acts("ask", {"text": at_least(200)}, {"question": TEXT})) == (
        "  ask never runs; what it lacks at best:\n"
        "    text: needs str of at least 200 characters, has str of at least 150 characters; "
        "no node gives that; the closest, wiki, promises str of at least 150 characters"
    )


def test_a_field_nobody_gives_is_said_so() -> None:
    reason = why(acts("ask", {"text": TEXT, "mood": TEXT}, {"question": TEXT}))
    assert reason.endswith("mood: needs str, has nothing; no node gives it")


def test_fewer_unmet_conditions_are_nearer_than_smaller_gaps() -> None:
    reason = why(acts("ask", {"text": at_least(200), "form": one_of("rap")}, {"q": TEXT}))
    assert "at least 100 characters" in reason
    assert "form" not in reason


def test_a_choice_that_is_never_made_names_the_choices_known() -> None:
    reason = why(acts("ask", {"form": one_of("haiku", "ode")}, {"question": TEXT}))
    assert "form: needs one of 'haiku', 'ode', has 'rap'; no node gives that; the closest" in reason


def test_a_field_that_would_be_overwritten_is_said_to_be() -> None:
    late = acts("late", {"text": at_least(100)}, {"form": one_of("late")})
    assert why(late).endswith(
        "form: must be absent, but is 'rap'; no node drops it (late would overwrite it)"
    )


def test_a_field_that_must_be_absent_is_dropped_by_someone() -> None:
    drops = acts("drops", {"text": TEXT, "note": TEXT}, {"text": None})
    wants = acts("wants", {"form": TEXT, "text": None}, {"q": TEXT})
    graph = Graph.build("g", [GATE, RAP, END, drops, wants], "gate", "end")
    reasons = graph.why_idle()
    assert (
        "text: must be absent, but is str of at least 100 characters; dropped by drops"
        in (reasons["wants"])
    )


def test_a_dead_end_says_what_would_have_to_follow_and_what_that_lacks() -> None:
    ask = acts("ask", {"text": at_least(50)}, {"question": TEXT})
    end = acts("end", {"question": TEXT}, {"done": TEXT})
    limerick = acts("limerick", {"passage": TEXT}, {"text": at_least(10), "form": TEXT})
    assert why(ask, limerick, target=end) == (
        "  limerick can run, but no walk leads on from it; nearest to going on is ask, "
        "which lacks:\n"
        "    text: needs str of at least 50 characters, has str of at least 10 characters; "
        "given by rap, wiki"
    )


def test_an_unreachable_target_is_followed_back_to_what_is_lacking() -> None:
    ask = acts("ask", {"text": at_least(200)}, {"question": TEXT})
    end = acts("end", {"question": TEXT, "score": Shape(float, low=0.5)}, {"done": TEXT})
    judge = acts("judge", {"question": TEXT}, {"score": Shape(float, low=0, high=1)})
    with pytest.raises(UnreachableTarget) as caught:
        Graph.build("g", [GATE, RAP, WIKI, ask, judge, end], "gate", "end")
    assert str(caught.value) == (
        "graph 'g': no walk from 'gate' reaches 'end'\n"
        "  end never runs; what it lacks at best:\n"
        "    question: needs str, has nothing; given by ask\n"
        "    score: needs float >= 0.5, has nothing; no node gives that; the closest, judge, "
        "promises float >= 0 and <= 1"
    )
    with pytest.raises(UnreachableTarget) as caught:
        Graph.build("g", [GATE, RAP, WIKI, ask, END.renamed("x"), _last()], "gate", "last")
    assert "ask never runs" in str(caught.value)
    assert "at least 200 characters, has str of at least 150 characters" in str(caught.value)


def _last() -> Action:
    return acts("last", {"question": TEXT}, {"done": TEXT})


def test_all_named_nodes_on_no_walk_are_told_at_once() -> None:
    one = acts("one", {"mood": TEXT}, {"a": TEXT})
    two = acts("two", {"mood": TEXT}, {"b": TEXT})
    with pytest.raises(NodeOnNoWalk) as caught:
        Graph.build("g", [GATE, RAP, END, one, two], "gate", "end", named=["one", "two"])
    assert "one never runs" in str(caught.value)
    assert "two never runs" in str(caught.value)


def test_many_givers_are_counted_rather_than_listed() -> None:
    askers = [acts(f"ask{n}", {"text": at_least(200)}, {"question": TEXT}) for n in range(9)]
    with pytest.raises(UnreachableTarget, match="given by ask0, ask1, ask2, ask3 and 5 more"):
        Graph.build("g", [GATE, RAP, *askers, _last()], "gate", "last")
