from __future__ import annotations

import pytest

from dataforge.errors import DeclarationError
from dataforge.plan.action import digest_of, leaves, merged_roles
from dataforge.plan.loop import loop
from dataforge.plan.shape import Shape
from tests.plan.scene import TEXT, acts, at_least, one_of


def test_a_field_newly_written_must_not_be_there_yet() -> None:
    rap = acts("rap", {"passage": TEXT}, {"text": TEXT})
    assert rap.requires == {"passage": TEXT, "text": None}


def test_a_field_read_and_written_may_be_there() -> None:
    polish = acts("polish", {"text": TEXT}, {"text": at_least(5)})
    assert polish.requires == {"text": TEXT}


def test_what_an_action_does_not_write_stays_known() -> None:
    tidy = acts("tidy", {"draft": TEXT}, {"draft": None, "text": TEXT})
    assert tidy.after({"draft": TEXT, "passage": at_least(5)}) == {
        "passage": at_least(5),
        "text": TEXT,
    }


def test_the_leaves_are_the_nodes_at_any_depth() -> None:
    answer = acts("answer", {"ask": TEXT}, {"answer": TEXT})
    judge = acts("judge", {"answer": TEXT}, {"verdict": one_of("pass", "fail")})
    tried = loop("tried", [answer, judge], until={"verdict": one_of("pass")}, at_most=2)
    assert list(leaves(tried)) == [answer, judge]
    assert list(leaves(answer)) == [answer]


def test_a_role_of_two_kinds_is_refused_by_the_names_of_both() -> None:
    one = acts("one", {}, {"a": TEXT}, roles={"judge": "judge"})
    two = acts("two", {}, {"b": TEXT}, roles={"judge": "model"})
    with pytest.raises(DeclarationError, match="'judge' is a judge in one and a model in two"):
        merged_roles("graph", (one, two))


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_a_weight_is_positive_and_finite(weight: float) -> None:
    with pytest.raises(DeclarationError, match="weight"):
        acts("rap", {}, {"a": TEXT}, weight=weight)


def test_a_judge_reads_the_field_it_judges() -> None:
    with pytest.raises(DeclarationError, match="judges 'answer', which is not among"):
        acts("judge", {"ask": TEXT}, {"score": Shape(float)}, judges="answer")


def test_the_family_is_the_name_up_to_the_first_slash() -> None:
    assert acts("ask/contextual/compare", {}, {"a": TEXT}).family == "ask"
    assert acts("ask", {}, {"a": TEXT}).renamed("other").family == "other"


def test_texts_hash_differently_when_split_elsewhere() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
