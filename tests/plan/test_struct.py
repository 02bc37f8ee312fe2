from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from annotated_types import MinLen
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dataforge.errors import DeclarationError, Unmet
from dataforge.plan.shape import Shape
from dataforge.plan.struct import (
    Absent,
    Struct,
    breach,
    broken,
    conditions,
    facts,
    fill,
    narrowed,
    struct_of,
)
from tests.plan.scene import TEXT, at_least, one_of
from tests.plan.strategies import shapes


class Passage(Struct):
    passage: Annotated[str, MinLen(10)]
    kind: Literal["news", "letter"]
    note: str | None = None
    draft: Absent = None


class Validated(Struct):
    text: str

    @field_validator("text")
    @classmethod
    def shouted(cls, text: str) -> str:
        return text.upper()


class Aliased(Struct):
    text: str = Field(alias="content")


class Defaulted(Struct):
    tone: str = "plain"


class Misread(Struct):
    text: int | str


class Dangling(Struct):
    text: dict[str, Nowhere]  # type: ignore[name-defined]  # noqa: F821


class Lax(Struct):
    model_config = ConfigDict(strict=False)
    n: int


class Open(Struct, extra="allow"):
    n: int


class Lowered(Struct, str_to_lower=True):
    text: str


class Unclosed(Struct):
    n: int
    text: Annotated[str, Field(pattern="(")]


class Hidden(Struct):
    calls: dict[str, Callable[[], int]]


class Base(BaseModel):
    x: int


class Below(Base):
    y: int


@dataclass
class Point:
    x: int


@dataclass
class Higher(Point):
    y: int


class Bases(Struct):
    one: Base
    many: list[Base]
    point: Point


class Belows(Struct):
    one: Below
    many: list[Below]
    point: Higher


def test_the_annotations_are_the_conditions() -> None:
    assert conditions(Passage) == {
        "passage": at_least(10),
        "kind": one_of("news", "letter"),
        "note": Shape(str, maybe=True),
        "draft": None,
    }


@pytest.mark.parametrize(
    ("struct", "said"),
    [
        (Validated, "cannot read the validator 'shouted'; say it by annotations"),
        (Aliased, "field 'text' of Aliased: an alias gives it two names"),
        (Defaulted, "field 'tone' of Defaulted: a default would fill in what no node gave"),
        (Misread, r"field 'text' of Misread: cannot read int \| str: one type a field"),
        (Dangling, "field 'text' of Dangling: the name 'Nowhere' does not resolve"),
        (Lax, "Lax: its model_config sets 'strict'; leave it out"),
        (Open, "Open: its model_config sets 'extra'; leave it out"),
        (Lowered, "Lowered: its model_config sets 'str_to_lower'; leave it out"),
        (Unclosed, "field 'text' of Unclosed: pydantic cannot check it: .*unclosed group"),
        (Hidden, r"field 'calls' of Hidden, its values: cannot read Callable\[\[\], int\]"),
    ],
)
def test_a_struct_the_plan_cannot_read_is_refused(struct: type[Struct], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        conditions(struct)


@given(st.dictionaries(st.sampled_from("abc"), shapes() | st.none()))
def test_a_struct_made_from_conditions_has_those_conditions(made: dict[str, Shape | None]) -> None:
    assert conditions(struct_of("Made", made)) == made


@pytest.mark.parametrize("name", ["copy", "_hidden", "two words"])
def test_a_field_name_that_no_struct_can_have_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="cannot be a field"):
        struct_of("Made", {name: TEXT})


def test_filling_takes_the_fields_declared_and_leaves_the_rest() -> None:
    filled = fill(Passage, {"passage": "x" * 10, "kind": "news", "other": 1})
    assert filled == Passage(passage="x" * 10, kind="news")
    assert facts(filled) == {"passage": "x" * 10, "kind": "news"}


@pytest.mark.parametrize(
    ("record", "reason", "detail"),
    [
        ({}, "passage is not str of at least 10 characters", "it is absent"),
        ({"passage": "short"}, "passage is not str of at least 10", r"'short' \(5 characters\)"),
        (
            {"passage": "x" * 90, "kind": "rap"},
            "kind is not one of 'letter', 'news'",
            r"'rap' \(3 characters\)",
        ),
        ({"passage": "x" * 90, "kind": "news", "draft": "d"}, "draft is not absent", "'d'"),
    ],
)
def test_a_record_that_does_not_meet_the_conditions_is_unmet(
    record: dict[str, object], reason: str, detail: str
) -> None:
    with pytest.raises(Unmet, match=detail) as caught:
        fill(Passage, record)
    assert caught.value.reason.startswith(reason)
    seen = breach(conditions(Passage), record)
    assert seen is not None
    assert seen.reason == caught.value.reason


def test_a_breach_inside_a_list_names_the_item() -> None:
    wanted = {"turns": Shape(list, items=at_least(3))}
    unmet = breach(wanted, {"turns": ["fine", "no"]})
    assert unmet is not None
    assert unmet.reason == "turns is not list of items, each str of at least 3 characters"
    assert unmet.detail == "item 1 is 'no' (2 characters)"
    assert breach(wanted, {"turns": ["fine"]}) is None


def test_a_breach_deep_inside_a_list_names_every_place_on_the_way() -> None:
    wanted = {"turns": Shape(list, items=Shape(frozenset, items=at_least(3)))}
    unmet = breach(wanted, {"turns": [frozenset(), frozenset({"no"})]})
    assert unmet is not None
    assert unmet.detail == "item 1, item 0 is 'no' (2 characters)"
    unmet = breach(wanted, {"turns": [frozenset(), None]})
    assert unmet is not None
    assert unmet.detail == "item 1 is None (NoneType)"


def test_a_value_too_long_to_show_is_still_a_breach() -> None:
    unmet = breach({"n": Shape(int)}, {"n": 10**9000})
    assert unmet is not None
    assert unmet.detail == "a value too long to show (int)"


def test_a_model_may_stand_for_its_base_and_not_the_reverse() -> None:
    narrow: dict[str, object] = {"one": Below(x=1, y=2), "many": [Below(x=1, y=2)]}
    narrow["point"] = Higher(1, 2)
    for name, shape in conditions(Belows).items():
        assert shape is not None
        wide = conditions(Bases)[name]
        assert wide is not None
        assert shape.within(wide)
        assert not wide.within(shape)
    assert fill(Bases, narrow).one == Below(x=1, y=2)
    assert fill(Bases, narrow).point == Higher(1, 2)
    for name, value in {"one": Base(x=1), "many": [Base(x=1)], "point": Point(1)}.items():
        with pytest.raises(Unmet, match=name):
            fill(Belows, {**narrow, name: value})


@pytest.mark.parametrize("field", ["one", "many", "point"])
def test_no_dict_is_taken_for_a_model_since_the_record_would_stay_a_dict(field: str) -> None:
    met: dict[str, object] = {"one": Base(x=1), "many": [Base(x=1)], "point": Point(1)}
    made: object = {"x": 1}
    with pytest.raises(Unmet, match=f"{field} is not "):
        fill(Bases, {**met, field: [made] if field == "many" else made})


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ([], "no choice is left"),
        ([["news"]], "unhashable"),
        (["news", 1], "values of several types"),
        ("rap", "cannot be narrowed to 'rap'"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(choice: object, said: str) -> None:
    with pytest.raises(DeclarationError, match=f"field 'kind'.*{said}"):
        narrowed(Passage, {"kind": choice})


def test_no_breach_where_all_conditions_are_met() -> None:
    assert breach(conditions(Passage), {"passage": "x" * 10, "kind": "news"}) is None


def test_a_promise_broken_while_building_names_field_promise_and_value() -> None:
    with pytest.raises(ValidationError) as caught:
        Passage(passage="x" * 70 + "tail", kind="rap")  # type: ignore[arg-type]
    unmet = broken(Passage, caught.value)
    assert unmet.reason == "kind is not one of 'letter', 'news'"
    with pytest.raises(ValidationError) as caught:
        Passage(passage="x" * 10, kind="news", extra="y" * 100)  # type: ignore[call-arg]
    unmet = broken(Passage, caught.value)
    assert unmet.reason == "Passage has no field 'extra'"
    assert unmet.detail == f"{'y' * 60 + '…'!r} (100 characters)"


def test_a_struct_is_frozen_and_refuses_unknown_fields() -> None:
    seen = Passage(passage="x" * 10, kind="news")
    with pytest.raises(ValidationError):
        seen.kind = "letter"  # type: ignore[misc]


def test_what_a_node_does_to_its_values_does_not_reach_the_record() -> None:
    class Basket(BaseModel):
        fruit: list[str]

    class Seen(Struct):
        basket: Basket
        names: list[dict[str, list[str]]]

    record = {"basket": Basket(fruit=["fig"]), "names": [{"all": ["fig"]}]}
    seen = fill(Seen, record)
    seen.basket.fruit.append("wasp")
    seen.names[0]["all"].append("wasp")
    assert record == {"basket": Basket(fruit=["fig"]), "names": [{"all": ["fig"]}]}


@given(st.integers().map(lambda n: n * 10**300))
def test_an_int_that_may_stand_for_a_float_is_taken_as_one(value: int) -> None:
    class Narrow(Struct):
        n: int

    class Wide(Struct):
        n: float

    if breach(conditions(Narrow), {"n": value}) is None:
        assert fill(Wide, {"n": value}).n == float(value)
    else:
        assert abs(value) > 1e308
