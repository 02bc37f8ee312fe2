from __future__ import annotations

from typing import Annotated

import pytest
from annotated_types import MultipleOf

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.action import Action
from dataforge.plan.annotation import read_shape
from dataforge.plan.loop import chain, loop
from dataforge.plan.shape import Shape
from tests.plan.scene import TEXT, acts, at_least, one_of

MAYBE = Shape(str, maybe=True)
VERDICT = one_of("pass", "fail", "undecided")
PASS = {"verdict": one_of("pass")}

answer = acts(
    "answer/plain",
    {"instruction": at_least(20), "task": one_of("argue", "recall"), "critique": MAYBE},
    {"answer": at_least(1), "truncated": Shape(bool)},
    roles={"answerer": "model"},
)
judge = acts(
    "judge/grounded",
    {"instruction": TEXT, "answer": TEXT, "task": one_of("recall", "list")},
    {"verdict": VERDICT, "feedback": TEXT, "score": Shape(float, low=0, high=1, maybe=True)},
    roles={"judge": "judge"},
    judges="answer",
)


def test_a_chain_needs_what_its_steps_need_and_do_not_give_each_other() -> None:
    assert chain([answer, judge]) == {
        "instruction": at_least(20),
        "task": one_of("recall"),
        "critique": MAYBE,
    }


def test_steps_that_want_different_things_of_a_field_do_not_fit() -> None:
    other = acts("judge/other", {"answer": TEXT, "task": one_of("list")}, {"verdict": VERDICT})
    assert chain([answer, other]) is None


def test_a_promise_too_weak_for_the_next_step_does_not_fit() -> None:
    strict = acts("judge/strict", {"answer": at_least(50)}, {"verdict": VERDICT})
    assert chain([answer, strict]) is None
    with pytest.raises(
        DeclarationError,
        match="loop 'tried': judge/strict does not fit after the steps before it: answer must be "
        "str of at least 50 characters, but is str of at least 1 character",
    ):
        loop("tried", [answer, strict], until=PASS, at_most=3)


def test_a_step_may_not_newly_write_what_an_earlier_one_read_or_wrote() -> None:
    again = acts("answer/again", {"instruction": TEXT}, {"answer": TEXT})
    assert chain([answer, again]) is None
    rewrites = acts("rewrite", {"task": TEXT}, {"instruction": TEXT})
    assert chain([answer, rewrites]) is None


def test_a_field_read_if_there_and_then_newly_written_must_be_absent_before() -> None:
    reads = acts("reads", {"note": MAYBE}, {"text": TEXT})
    writes = acts("writes", {"text": TEXT}, {"note": TEXT})
    assert chain([reads, writes]) == {"note": None}


def test_a_need_of_absence_meets_only_what_may_be_absent() -> None:
    absent = acts("absent", {"draft": None}, {"a": TEXT})
    maybe = acts("maybe", {"draft": MAYBE}, {"b": TEXT})
    needs = acts("needs", {"draft": TEXT}, {"c": TEXT})
    assert chain([absent, maybe]) == {"draft": None}
    assert chain([maybe, absent]) == {"draft": None}
    assert chain([absent, needs]) is None
    assert chain([needs, absent]) is None


def test_a_dropped_field_is_gone_for_the_next_step() -> None:
    drafts = acts("drafts", {}, {"draft": TEXT})
    tidies = acts("tidies", {"draft": TEXT}, {"draft": None, "text": TEXT})
    reads = acts("reads", {"draft": TEXT}, {"seen": TEXT})
    assert chain([drafts, tidies]) == {}
    assert chain([drafts, tidies, reads]) is None


def test_a_loop_promises_what_its_body_does_once_until_holds() -> None:
    tried = loop("answered", [answer, judge], until=PASS, at_most=3, critique="feedback")
    assert tried.preconditions == {"instruction": at_least(20), "task": one_of("recall")}
    assert tried.postconditions == {
        "answer": at_least(1),
        "truncated": Shape(bool),
        "verdict": one_of("pass"),
        "feedback": TEXT,
        "score": Shape(float, low=0, high=1, maybe=True),
    }
    assert tried.roles == {"answerer": "model", "judge": "judge"}
    assert tried.steps == (answer, judge)
    assert tried.body.walks(9) == (("answer/plain", "judge/grounded"),)
    assert tried.body.preconditions["critique"] == MAYBE


def test_without_a_critique_that_field_is_one_like_any_other() -> None:
    tried = loop("answered", [answer, judge], until=PASS, at_most=3)
    assert tried.preconditions["critique"] == MAYBE


def test_until_may_demand_a_value_that_the_body_leaves_optional() -> None:
    tried = loop("answered", [answer, judge], until={"score": Shape(float, low=0.5)}, at_most=2)
    assert tried.postconditions["score"] == Shape(float, low=0.5, high=1)


@pytest.mark.parametrize(
    ("steps", "until", "at_most", "critique", "said"),
    [
        ([answer, judge], PASS, 0, None, "at_most is 0; the least is 1"),
        ([], PASS, 1, None, "no steps to repeat"),
        ([answer, judge], PASS, 1, "advice", "its critique is 'advice', which no step writes"),
        ([answer, judge], PASS, 1, "task", "its critique is 'task', which no step writes"),
        ([answer, judge], {"mood": TEXT}, 1, None, "until reads 'mood', which no step writes"),
        ([answer, judge], PASS, 1, "score", "'score' is float .* but is read as `critique`, str"),
    ],
)
def test_a_loop_that_makes_no_sense_is_refused(
    steps: list[Action], until: dict[str, Shape], at_most: int, critique: str | None, said: str
) -> None:
    with pytest.raises(DeclarationError, match=said):
        loop("tried", steps, until=until, at_most=at_most, critique=critique)


def test_a_critique_must_be_optional_to_its_reader() -> None:
    needs = acts("answer/needs", {"critique": TEXT}, {"answer": TEXT, "task": one_of("recall")})
    says = acts("judge/says", {"answer": TEXT}, {"feedback": TEXT, "verdict": VERDICT})
    with pytest.raises(DeclarationError, match="must take `critique` as optional"):
        loop("tried", [needs, says], until=PASS, at_most=2, critique="feedback")


def test_an_until_of_absence_promises_that_the_field_is_gone() -> None:
    clear = acts("clear", {"draft": TEXT}, {"draft": MAYBE, "out": TEXT})
    made = loop("tidy", [clear], until={"draft": None}, at_most=2)
    assert made.postconditions == {"draft": None, "out": TEXT}
    assert "draft" not in made.after({"draft": TEXT})


def test_two_steps_of_one_name_are_refused() -> None:
    first, second = acts("x", {}, {"p": TEXT}), acts("x", {"p": TEXT}, {"q": TEXT})
    with pytest.raises(DeclarationError, match="more than one step is named 'x'"):
        loop("doubled", [first, second], until={"q": TEXT}, at_most=2)


def test_an_until_that_can_never_hold_is_refused() -> None:
    with pytest.raises(ContradictoryCondition, match="verdict must be 'perfect', but is one of"):
        loop("tried", [answer, judge], until={"verdict": one_of("perfect")}, at_most=2)
    with pytest.raises(ContradictoryCondition, match="answer must be absent"):
        loop("tried", [answer, judge], until={"answer": None}, at_most=2)


def test_the_digest_changes_with_order_and_limits() -> None:
    one, two = acts("one", {}, {"a": TEXT}), acts("two", {}, {"b": one_of("x", "y")})
    until = {"b": one_of("x")}
    first = loop("tried", [one, two], until=until, at_most=2)
    assert first.digest == loop("tried", [one, two], until=until, at_most=2).digest
    assert first.digest != loop("tried", [two, one], until=until, at_most=2).digest
    assert first.digest != loop("tried", [one, two], until=until, at_most=3).digest
    assert first.digest != loop("tried", [one, two], until={"b": one_of("y")}, at_most=2).digest


def test_an_until_that_no_run_could_check_is_refused() -> None:
    wanted = list[Annotated[int, MultipleOf(3)]]
    for kept in (list, list[int], wanted):
        listed = acts("listed", {"text": TEXT}, {"items": read_shape(kept, "items")})
        until = {"items": read_shape(wanted, "items")}
        if kept == wanted:
            assert loop("l", [listed], until=until, at_most=2).postconditions == until
            continue
        with pytest.raises(DeclarationError, match="until cannot check of items that it is list"):
            loop("l", [listed], until=until, at_most=2)
