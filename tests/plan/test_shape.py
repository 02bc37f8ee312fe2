from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given, settings
from pydantic import BaseModel

from dataforge.errors import ContradictoryCondition
from dataforge.plan.shape import Shape, entails, join_known, missing
from tests.plan.scene import TEXT, at_least, one_of
from tests.plan.strategies import DOMAIN, Colour, Letter, Rank, shapes, values


class First(BaseModel):
    x: int


class Second(First):
    y: int


class Third(First): ...


def only_nones_in_common(a: Shape, b: Shape) -> bool:
    """Whether None is all that items at some depth share, which no shape says."""
    while a.items is not None and b.items is not None:
        if a.items.maybe and b.items.maybe and a.items.meet(b.items) is None:
            return True
        a, b = a.items, b.items
    return False


class TestLaws:
    @given(shapes(), shapes(), values)
    def test_within_is_sound(self, narrow: Shape, wide: Shape, value: object) -> None:
        if narrow.within(wide) and narrow.holds(value):
            assert wide.holds(value)

    @given(shapes())
    def test_within_is_reflexive(self, shape: Shape) -> None:
        assert shape.within(shape)

    @given(shapes(), shapes(), shapes())
    def test_within_is_transitive(self, a: Shape, b: Shape, c: Shape) -> None:
        if a.within(b) and b.within(c):
            assert a.within(c)

    @given(shapes(), shapes())
    def test_shapes_within_each_other_are_equal(self, a: Shape, b: Shape) -> None:
        if a.within(b) and b.within(a):
            assert a == b

    @given(shapes(), shapes())
    def test_join_is_an_upper_bound(self, a: Shape, b: Shape) -> None:
        joined = a.join(b)
        assert a.within(joined)
        assert b.within(joined)

    @given(shapes(), shapes(), shapes())
    def test_join_is_the_least_upper_bound(self, a: Shape, b: Shape, wide: Shape) -> None:
        if a.within(wide) and b.within(wide):
            assert a.join(b).within(wide)

    @given(shapes(), shapes(), shapes())
    def test_join_is_commutative_associative_and_idempotent(
        self, a: Shape, b: Shape, c: Shape
    ) -> None:
        assert a.join(b) == b.join(a)
        assert a.join(b).join(c) == a.join(b.join(c))
        assert a.join(a) == a

    @given(shapes(), shapes())
    def test_meet_is_inside_both(self, a: Shape, b: Shape) -> None:
        both = a.meet(b)
        if both is not None:
            assert both.within(a)
            assert both.within(b)

    @given(shapes(), shapes(), values)
    def test_meet_keeps_every_value_of_both(self, a: Shape, b: Shape, value: object) -> None:
        if value is not None and a.holds(value) and b.holds(value):
            both = a.meet(b)
            if both is None:
                assert only_nones_in_common(a, b)
            else:
                assert both.holds(value)

    @given(shapes(), shapes(), shapes())
    def test_meet_is_the_greatest_lower_bound(self, a: Shape, b: Shape, narrow: Shape) -> None:
        if narrow.within(a) and narrow.within(b):
            both = a.meet(b)
            if both is None:
                assert only_nones_in_common(a, b)
            else:
                assert narrow.within(both)

    @given(shapes(), shapes())
    def test_meet_is_commutative_and_gives_the_narrower_of_two_nested(
        self, a: Shape, b: Shape
    ) -> None:
        assert a.meet(b) == b.meet(a)
        if a.within(b):
            assert a.meet(b) == a

    @given(shapes())
    def test_every_shape_can_be_said(self, shape: Shape) -> None:
        assert shape.say()


class TestNumbers:
    def test_a_bool_is_not_an_int(self) -> None:
        assert not Shape(int).holds(True)
        assert not Shape(bool).within(Shape(int))
        assert not one_of(1).holds(True)
        assert not Shape(bool, frozenset({True})).within(one_of(1))

    def test_an_int_may_stand_for_a_float_but_not_the_reverse(self) -> None:
        assert Shape(int).within(Shape(float))
        assert Shape(float).holds(3)
        assert not Shape(float).within(Shape(int))
        assert one_of(1).within(Shape(float, frozenset({1.0})))
        assert not Shape(float, frozenset({1.0})).within(one_of(1))

    def test_no_int_lies_between_bounds_so_they_move_inwards(self) -> None:
        assert Shape(int, low=3, low_open=True) == Shape(int, low=4)
        assert Shape(int, low=2.5, high=4.5) == Shape(int, low=3, high=4)

    def test_no_int_is_infinite_or_not_a_number(self) -> None:
        finite = Shape(float, low_open=True, high_open=True)
        assert Shape(int).within(finite)
        assert not Shape(float).within(finite)
        assert not any(finite.holds(value) for value in (nan, inf, -inf))

    def test_nan_is_a_float_but_meets_no_bound(self) -> None:
        assert Shape(float).holds(nan)
        assert not Shape(float, low=0.0).holds(nan)
        assert not Shape(float).within(Shape(float, high=inf, high_open=True))

    def test_open_and_closed_bounds_differ_at_the_bound(self) -> None:
        closed, opened = Shape(float, low=1.0), Shape(float, low=1.0, low_open=True)
        assert opened.within(closed)
        assert not closed.within(opened)
        assert closed.join(opened) == closed
        assert closed.meet(opened) == opened

    def test_nan_among_values_is_refused(self) -> None:
        with pytest.raises(ValueError, match="NaN"):
            Shape(float, frozenset({nan}))


def listed(items: Shape, **limits: int) -> Shape:
    return Shape(list, items=items, **limits)  # type: ignore[arg-type]


class TestItems:
    @pytest.mark.parametrize(
        ("narrow", "wide"),
        [
            (one_of("a"), Shape(str)),
            (at_least(5), Shape(str)),
            (Shape(int), Shape(float)),
            (Shape(Second), Shape(First)),
            (listed(Shape(int)), listed(Shape(float))),
        ],
    )
    def test_a_list_of_narrower_items_is_within_one_of_wider(
        self, narrow: Shape, wide: Shape
    ) -> None:
        assert listed(narrow).within(listed(wide))
        assert not listed(wide).within(listed(narrow))
        assert listed(narrow).within(Shape(list))
        assert not Shape(list).within(listed(wide))

    def test_a_list_of_bools_is_no_list_of_ints(self) -> None:
        assert not listed(Shape(bool)).within(listed(Shape(int)))
        assert not listed(Shape(int)).holds([1, True])

    def test_holding_looks_at_every_item(self) -> None:
        nested = listed(listed(at_least(2)))
        assert nested.holds([["ab"], []])
        assert not nested.holds([["ab"], ["a"]])
        assert not nested.holds([["ab"], None])

    def test_items_that_may_be_none_are_wider_than_those_that_may_not(self) -> None:
        texts, gaps = listed(TEXT), listed(replace(TEXT, maybe=True))
        assert gaps.holds(["a", None])
        assert texts.within(gaps)
        assert not gaps.within(texts)
        assert texts.join(gaps) == gaps
        assert texts.meet(gaps) == texts
        assert listed(Shape(maybe=True)) == listed(Shape()) == Shape(list)

    def test_lists_with_nothing_but_none_in_common_have_no_meet_that_could_be_said(self) -> None:
        texts, numbers = (listed(Shape(base, maybe=True)) for base in (str, int))
        assert texts.meet(numbers) is None
        assert texts.join(numbers) == Shape(list)

    def test_the_empty_list_is_in_every_list_and_says_nothing_of_items(self) -> None:
        empty = Shape(list, max_len=0)
        assert listed(Shape(int), max_len=0) == empty
        assert empty.within(listed(one_of("a")))
        assert empty.join(listed(Shape(int), min_len=2)) == listed(Shape(int))

    def test_lists_with_no_item_in_common_share_the_empty_one(self) -> None:
        texts, numbers = listed(Shape(str)), listed(Shape(int))
        assert texts.meet(numbers) == Shape(list, max_len=0)
        assert listed(Shape(str), min_len=1).meet(numbers) is None
        assert texts.join(numbers) == Shape(list)

    def test_items_of_what_has_none_are_refused(self) -> None:
        with pytest.raises(ValueError, match="str has no items of one shape"):
            Shape(str, items=Shape(str))


class TestModels:
    def test_a_model_of_a_subclass_is_one_of_its_base_and_not_the_reverse(self) -> None:
        assert Shape(Second).within(Shape(First))
        assert not Shape(First).within(Shape(Second))
        assert Shape(First).holds(Second(x=1, y=2))
        assert not Shape(First).holds({"x": 1})
        assert Shape(Second).join(Shape(Third)) == Shape(First)

    def test_minus_zero_is_zero(self) -> None:
        assert one_of(0.0).holds(-0.0)
        assert one_of(-0.0) == one_of(0.0)
        assert one_of(-0.0).say() == "0.0"

    def test_an_int_past_every_double_is_no_number(self) -> None:
        assert not Shape(int).holds(10**400)
        assert Shape(int).within(Shape(float))
        with pytest.raises(ContradictoryCondition):
            one_of(10**400)


class TestCompleteness:
    @settings(max_examples=300)
    @given(shapes(), shapes())
    def test_a_no_of_within_has_a_value_to_show_for_it(self, narrow: Shape, wide: Shape) -> None:
        """Over a domain in which both say all they say; marks and opaque types aside."""
        if narrow.marks | wide.marks or narrow.within(wide):
            return
        found = any(narrow.holds(value) and not wide.holds(value) for value in DOMAIN)
        assert found, (narrow.say(), wide.say())


class TestValues:
    def test_values_entail_the_bounds_and_lengths_they_keep(self) -> None:
        assert one_of("ab", "abc").within(at_least(2))
        assert not one_of("a", "abc").within(at_least(2))
        assert one_of(3, 4).within(Shape(int, low=3))

    def test_bounds_never_entail_values(self) -> None:
        assert not at_least(1).within(one_of("a"))

    def test_the_bounds_of_literals_only_narrow_their_choice(self) -> None:
        assert Shape(str, frozenset({"a", "abc"}), min_len=2) == one_of("abc")

    def test_all_members_of_an_enum_are_the_enum(self) -> None:
        assert Shape(Colour) == one_of(*Colour)
        assert Shape(bool) == one_of(True, False)

    def test_a_text_enum_is_text_but_its_members_are_no_literals(self) -> None:
        assert Shape(Letter).within(TEXT)
        assert not one_of(Letter.A).within(one_of("a"))
        assert Shape(Rank).within(Shape(int, low=1, high=4))

    def test_values_of_two_types_join_without_confusing_equal_ones(self) -> None:
        joined = Shape(bool, frozenset({True})).join(one_of(1))
        assert joined.holds(True)
        assert joined.holds(1)
        assert joined.base is object

    def test_values_of_two_types_are_refused(self) -> None:
        with pytest.raises(ValueError, match="several types"):
            one_of("a", 1)

    def test_values_join_to_their_bounds_with_an_interval(self) -> None:
        assert one_of(2, 5).join(Shape(int, low=3, high=4)) == Shape(int, low=2, high=5)


class TestMarksAndAbsence:
    def test_a_mark_entails_only_itself(self) -> None:
        marked = Shape(str, marks=frozenset({"pattern"}))
        assert marked.within(TEXT)
        assert not TEXT.within(marked)
        assert marked.join(TEXT) == TEXT
        assert TEXT.meet(marked) == marked

    def test_what_may_be_absent_does_not_meet_a_need(self) -> None:
        maybe = Shape(str, maybe=True)
        assert TEXT.within(maybe)
        assert not maybe.within(TEXT)
        assert maybe.holds(None)
        assert not TEXT.holds(None)

    def test_an_empty_shape_cannot_be_made(self) -> None:
        with pytest.raises(ContradictoryCondition, match="int >= 3 and <= 2"):
            Shape(int, low=3, high=2)
        with pytest.raises(ContradictoryCondition):
            Shape(int, low=3.2, high=3.8)
        with pytest.raises(ContradictoryCondition, match="'a'"):
            Shape(str, frozenset({"a"}), min_len=2)

    def test_shapes_with_nothing_in_common_have_no_meet(self) -> None:
        assert one_of("a").meet(one_of("b")) is None
        assert Shape(str).meet(Shape(int)) is None
        assert at_least(5).meet(Shape(str, max_len=4)) is None

    def test_limits_a_type_cannot_have_are_refused(self) -> None:
        with pytest.raises(ValueError, match="str has no least"):
            Shape(str, low=1)
        with pytest.raises(ValueError, match="int has no length"):
            Shape(int, min_len=1)


class TestKnown:
    def test_a_field_not_known_is_known_to_be_absent(self) -> None:
        assert missing({}, {"draft": None, "note": Shape(str, maybe=True)}) == {}
        assert missing({}, {"text": TEXT}) == {"text": (TEXT, None)}
        assert missing({"draft": TEXT}, {"draft": None}) == {"draft": (None, TEXT)}

    def test_what_may_be_there_is_not_known_to_be_absent(self) -> None:
        assert not entails(Shape(str, maybe=True), None)

    def test_a_field_of_one_side_only_may_be_absent_in_the_join(self) -> None:
        joined = join_known({"a": at_least(3), "b": TEXT}, {"a": at_least(5)})
        assert joined == {"a": at_least(3), "b": Shape(str, maybe=True)}


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (at_least(200), "str of at least 200 characters"),
        (Shape(str, min_len=1), "str of at least 1 character"),
        (Shape(str, max_len=1), "str of at most 1 character"),
        (Shape(str, min_len=2, max_len=9), "str of 2 to 9 characters"),
        (Shape(list, min_len=2, max_len=2), "list of exactly 2 items"),
        (Shape(float, low=0, high=1, high_open=True), "float >= 0 and < 1"),
        (Shape(float, low_open=True, high_open=True), "finite float"),
        (Shape(int, low=1000000), "int >= 1000000"),
        (Shape(list, items=Shape(str)), "list[str]"),
        (Shape(tuple, min_len=2, items=Shape(int)), "tuple[int, ...] of at least 2 items"),
        (Shape(list, items=at_least(5)), "list of items, each str of at least 5 characters"),
        (Shape(list, min_len=1, items=one_of("a")), "list of at least 1 item, each 'a'"),
        (Shape(list, items=Shape(list, items=Shape(bool))), "list[list[bool]]"),
        (Shape(list, items=Shape(str, maybe=True)), "list[str | None]"),
        (
            Shape(list, items=Shape(str, None, min_len=2, maybe=True)),
            "list of items, each str of at least 2 characters or None",
        ),
        (one_of("wiki", "rap"), "one of 'rap', 'wiki'"),
        (one_of(10, 9), "one of 9, 10"),
        (one_of("rap"), "'rap'"),
        (one_of(Letter.A), "Letter.A"),
        (Shape(bool), "bool"),
        (Shape(Colour), "Colour"),
        (Shape(), "anything"),
        (Shape(str, maybe=True), "str, or absent"),
        (Shape(str, marks=frozenset({"odd"})), "str marked 'odd'"),
    ],
)
def test_a_shape_is_said_in_english(shape: Shape, said: str) -> None:
    assert shape.say() == said
