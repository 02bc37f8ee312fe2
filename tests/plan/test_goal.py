"""Plans reach the goal, are as short as can be, and hold no step that could be left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from dataforge.errors import UnreachableTarget
from dataforge.plan.action import Action
from dataforge.plan.goal import assumed, plans, relevant
from dataforge.plan.shape import Conditions, Known, Shape, missing
from dataforge.plan.space import entry
from tests.plan.libraries import libraries
from tests.plan.scene import TEXT, acts, at_least, one_of

RAP = acts("rap", {"passage": at_least(200)}, {"text": at_least(100), "form": one_of("rap")})
WIKI = acts("wiki", {"passage": at_least(300)}, {"text": at_least(200), "form": one_of("wiki")})
ASK = acts("ask", {"text": at_least(50)}, {"question": TEXT})
ANSWER = acts("answer", {"text": TEXT, "question": TEXT}, {"answer": TEXT})
ASIDE = acts("aside", {"passage": TEXT}, {"note": TEXT})
LIBRARY: list[Action] = [RAP, WIKI, ASK, ANSWER, ASIDE]


def named(have: Conditions, want: Conditions, limit: int = 9) -> list[tuple[str, ...]]:
    found = plans(LIBRARY, have, want, limit).found
    return [tuple(action.name for action in way) for way in found]


def test_all_ways_to_a_goal_are_found_without_detours() -> None:
    assert named({"passage": at_least(300)}, {"answer": TEXT}) == [
        ("rap", "ask", "answer"),
        ("wiki", "ask", "answer"),
    ]


def test_what_is_given_need_not_be_made() -> None:
    have: Conditions = {"text": at_least(50), "passage": at_least(300)}
    assert named(have, {"answer": TEXT}) == [("ask", "answer")]
    assert named(have, {"text": TEXT}) == [()]


def test_a_goal_may_name_a_choice_a_length_or_an_absence() -> None:
    have: Conditions = {"passage": at_least(300)}
    assert named(have, {"answer": TEXT, "form": one_of("wiki")}) == [("wiki", "ask", "answer")]
    assert named(have, {"text": at_least(150)}) == [("wiki",)]
    assert named(have, {"question": None}) == [()]


def test_shorter_plans_come_first_and_a_cut_list_says_so() -> None:
    long = acts("about", {"passage": TEXT}, {"draft": TEXT})
    then = acts("then", {"draft": TEXT}, {"text": at_least(60), "form": one_of("long")})
    found = plans([*LIBRARY, long, then], {"passage": at_least(300)}, {"question": TEXT}, 2)
    assert [[action.name for action in way] for way in found.found] == [
        ["rap", "ask"],
        ["wiki", "ask"],
    ]
    assert found.more
    whole = plans([*LIBRARY, long, then], {"passage": at_least(300)}, {"question": TEXT}, 3)
    assert [action.name for action in whole.found[2]] == ["about", "then", "ask"]
    assert not whole.more


def test_where_there_is_none_it_is_said_what_is_lacking() -> None:
    with pytest.raises(UnreachableTarget, match="no node gives that; the closest, wiki, promises"):
        plans(LIBRARY, {"passage": at_least(300)}, {"text": at_least(900)}, 1)


def test_only_what_can_help_is_relevant() -> None:
    assert [action.name for action in relevant(LIBRARY, {"question": TEXT})] == [
        "ask",
        "rap",
        "wiki",
    ]


def taken(field: str, actions: Sequence[Action]) -> tuple[Shape, list[str]]:
    found = assumed(field, actions)
    assert found is not None
    return found.shape, [name for name, _ in found.asking]


def test_a_field_given_by_name_is_good_enough_for_all_its_readers() -> None:
    assert taken("passage", LIBRARY) == (at_least(300), [])
    assert taken("form", LIBRARY) == (TEXT, [])
    assert assumed("nothing", LIBRARY) is None


def test_where_readers_disagree_only_the_type_is_assumed_in_any_order() -> None:
    short, long = Shape(str, max_len=400), at_least(500)
    disagreeing = [
        acts("b", {"text": short}, {"x": TEXT}),
        acts("a", {"text": long}, {"y": TEXT}),
        acts("c", {"text": TEXT}, {"z": TEXT}),
    ]
    assert taken("text", disagreeing) == taken("text", disagreeing[::-1]) == (TEXT, ["a", "b"])
    of_no_one_type = [*disagreeing, acts("d", {"text": Shape(int)}, {"w": TEXT})]
    assert taken("text", of_no_one_type) == (Shape(), ["a", "b", "c", "d"])


def test_readers_of_a_choice_ask_for_more_than_is_assumed() -> None:
    library = [acts("a", {"kind": one_of("x", "y")}, {"p": TEXT}), acts("b", {"kind": TEXT}, {})]
    assert taken("kind", library) == (TEXT, ["a"])


@given(libraries())
def test_what_is_assumed_is_enough_for_all_readers_but_those_that_are_told(
    actions: list[Action],
) -> None:
    for field in {field for action in actions for field in action.preconditions}:
        found = assumed(field, actions)
        if found is None:
            continue
        asking = {name for name, _ in found.asking}
        for action in actions:
            want = action.preconditions.get(field)
            if want is not None:
                assert found.shape.within(want) == (action.name not in asking)


def test_a_node_may_be_named_as_the_gates_are() -> None:
    library = [
        acts("what is given", {"a": TEXT}, {"b": TEXT}),
        acts("the goal", {"b": TEXT}, {"c": TEXT}),
    ]
    (way,) = plans(library, {"a": TEXT}, {"c": TEXT}, 9).found
    assert [action.name for action in way] == ["what is given", "the goal"]


def test_detours_too_many_to_look_at_are_told_from_plans_that_are_left() -> None:
    fixes = [acts(f"fix{number}", {"text": TEXT}, {"text": TEXT}) for number in range(8)]
    found = plans([ASK, *fixes], {"text": at_least(50)}, {"text": TEXT, "question": TEXT}, 9)
    assert [[action.name for action in way] for way in found.found] == [["ask"]]
    assert found.cut
    assert not found.more


def reaches(way: tuple[Action, ...], known: Known, want: Conditions) -> bool:
    for action in way:
        if missing(known, action.requires):
            return False
        known = action.after(known)
    return not missing(known, want)


@given(libraries())
def test_every_plan_reaches_the_goal_and_leaving_out_any_step_does_not(
    actions: list[Action],
) -> None:
    have, want = actions[0].postconditions, actions[-1].preconditions
    try:
        found = plans(actions[1:-1], have, want, 20)
    except UnreachableTarget:
        return
    assert found.found
    assert list(map(len, found.found)) == sorted(map(len, found.found))
    for way in found.found:
        assert reaches(way, entry(have), want)
        for place in range(len(way)):
            assert not reaches((*way[:place], *way[place + 1 :]), entry(have), want)


def test_an_empty_library_meets_what_is_there_already() -> None:
    assert plans([], {"a": Shape(int)}, {"a": Shape(int)}, 1).found == ((),)
