from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, Flag
from functools import partial
from math import inf, nan
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, NewType, Protocol, TypedDict, TypeVar

import annotated_types as at
import pytest
from hypothesis import given
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypeAliasType

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.annotation import Absent, read_shape, write_shape
from dataforge.plan.shape import Shape
from tests.plan.scene import at_least, one_of
from tests.plan.strategies import Colour, shapes, values

read = partial(read_shape, where="field 'x' of Passage")


class Part(BaseModel):
    name: str


@dataclass(frozen=True)
class Turn:
    role: str


class Mode(Flag):
    FAST = 1


class Base(BaseModel):
    x: int


class First(Base): ...


class Second(BaseModel): ...


class Nobody(Enum): ...


class Other(Enum):
    SLOW = 1


class Fields(TypedDict):
    x: int


class Shouts(Protocol):
    def shout(self) -> str: ...


Name = NewType("Name", str)
T = TypeVar("T")
Long = TypeAliasType("Long", Annotated[str, at.MinLen(9)])


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        (str, Shape(str)),
        (object, Shape()),
        (bool, Shape(bool)),
        (Colour, Shape(Colour)),
        (Part, Shape(Part)),
        (Turn, Shape(Turn)),
        (StrictStr, Shape(str)),
        (FiniteFloat, Shape(float, low_open=True, high_open=True)),
        (Literal["a", "b"], one_of("a", "b")),
        (Literal["a", None], Shape(str, frozenset({"a"}), maybe=True)),
        (Literal[Colour.RED], one_of(Colour.RED)),
        (str | None, Shape(str, maybe=True)),
        (Annotated[str, at.MinLen(3)] | None, Shape(str, min_len=3, maybe=True)),
        (Annotated[str | None, at.MinLen(3)], Shape(str, min_len=3, maybe=True)),
        (Annotated[str, at.Len(2, 5)], Shape(str, min_len=2, max_len=5)),
        (Annotated[str, Field(min_length=2, description="…")], at_least(2)),
        (Annotated[str, "a note to the reader"], Shape(str)),
        (Annotated[str, at.MinLen(3), at.MinLen(5)], at_least(5)),
        (Annotated[int, at.Gt(3)], Shape(int, low=4)),
        (Annotated[float, at.Interval(ge=0, lt=1)], Shape(float, low=0, high=1, high_open=True)),
        (Annotated[Literal[1, 2, 3], at.Ge(2)], one_of(2, 3)),
        (list, Shape(list)),
        (list[Any], Shape(list)),
        (Annotated[list, at.MinLen(1)], Shape(list, min_len=1)),
        (Long, at_least(9)),
        (list[str], Shape(list, items=Shape(str))),
        (list[Long], Shape(list, items=at_least(9))),
        (list[object], Shape(list)),
        (list[list[int]], Shape(list, items=Shape(list, items=Shape(int)))),
        (tuple[Literal["a"], ...], Shape(tuple, items=one_of("a"))),
        (set[Part], Shape(set, items=Shape(Part))),
        (Annotated[list[int], at.Len(1, 3)], Shape(list, min_len=1, max_len=3, items=Shape(int))),
        (Annotated[list[int], at.MaxLen(0)], Shape(list, max_len=0)),
        (Absent, None),
    ],
)
def test_an_annotation_is_read(annotation: object, shape: Shape | None) -> None:
    assert read(annotation) == shape


def test_element_types_that_are_not_read_are_a_mark_that_entails_only_itself() -> None:
    for one, other in ((dict[str, int], dict[str, str]), (tuple[int, str], tuple[str, int])):
        first, second = read(one), read(other)
        assert first is not None
        assert second is not None
        assert first.within(Shape(first.base))
        assert not Shape(first.base).within(first)
        assert not first.within(second)
    optional = read(list[str | None])
    assert optional is not None
    assert optional.say() == "list[str | None]"
    assert not optional.within(Shape(list, items=Shape(str)))


def test_the_same_pattern_written_twice_is_one_mark() -> None:
    first = read(Annotated[str, Field(pattern="^x")])
    again = read(Annotated[str, StringConstraints(pattern="^x")])
    assert first == again
    assert first is not None
    assert first.say() == "str marked pattern '^x'"


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (int | str, "one type a field: use Literal for choices, or make two nodes"),
        (int | str | None, "one type a field"),
        (Literal["a", 1], "choices of one type"),
        (Any, "write object for any value at all"),
        (datetime.date, "cannot read date: write str, and hold it as text, by ISO 8601"),
        (datetime.timedelta, "write float, for a number of seconds"),
        (Decimal, "write float, or int"),
        (PurePath, "write str"),
        (complex, "write two fields, each float"),
        (bytearray, "write bytes"),
        (Sequence[str], "write list[T]"),
        (Mapping[str, int], "write dict[K, V]"),
        (Fields, "write dict[K, V], or a pydantic model of the same fields"),
        (Callable[[int], str], "a record holds data and no code"),
        (type[int], "a record holds data and no code"),
        (Shouts, "a record holds data and no code"),
        (Name, "write str, which is all it is at run time"),
        (T, "write the type itself"),
        (Final[int], "write int alone: fields are frozen"),
        ("Nowhere", "the name does not resolve"),
        (range, "write list[T]"),
        (Nobody, "it has no members, so no value is one"),
        (int | float, "write float: an int may stand for one"),
        (bool | int, "one type a field"),
        (str | Literal["a"], "write str, which the literals are too"),
        (Literal["a"] | Literal["b", "c"], "write Literal['a', 'b', 'c']"),
        (First | Second, "give them a common base class"),
        (Base | First, "write Base, which the others are too"),
        (Mode | Other, "one type a field: make one Enum of them"),
        (list[int | str], "field 'x' of Passage, its items: cannot read int | str: one type"),
        (list[Absent], "items cannot be Absent"),
        (object(), "supported are str, int, float"),
        (Mode, "use an Enum or Literal"),
        (None, "None says nothing; write Absent"),
        (Absent | None, "Absent"),
        (Annotated[str, at.Ge(3)], "bounds are for int and float, not str"),
        (Annotated[bool, at.Ge(0)], "bounds are for int and float, not bool"),
        (Annotated[int, at.MinLen(3)], "int has no length; use Ge and Le for numbers"),
        (Annotated[float, at.Ge(-inf)], "a bound is finite"),
        (Annotated[float, at.Ge(nan)], "a bound is an int or a float"),
        (Annotated[str, AfterValidator(str.strip)], "may change the value; use annotated_types"),
        (Annotated[str, ["unhashable"]], "metadata must be hashable"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_field_and_what_to_write(
    annotation: object, said: str
) -> None:
    with pytest.raises(DeclarationError, match="field 'x' of Passage") as caught:
        read(annotation)
    assert said in str(caught.value)


def test_a_condition_no_value_can_meet_names_the_field() -> None:
    with pytest.raises(ContradictoryCondition, match="field 'x' of Passage can never be met"):
        read(Annotated[str, at.MinLen(5), at.MaxLen(4)])
    with pytest.raises(ContradictoryCondition, match="no value is 'a' and str of at least 2"):
        read(Annotated[Literal["a"], at.MinLen(2)])


@given(shapes())
def test_a_shape_written_as_an_annotation_reads_back_the_same(shape: Shape) -> None:
    assert read(write_shape(shape)) == shape


@given(shapes(), shapes(), values)
def test_what_entails_a_need_also_passes_pydantic_there(
    narrow: Shape, wide: Shape, value: object
) -> None:
    if narrow.within(wide) and narrow.holds(value):
        assert _accepted(wide, value)


@given(shapes(), values)
def test_pydantic_accepts_what_a_shape_holds_and_no_more_where_it_lists_no_literals(
    shape: Shape, value: object
) -> None:
    if shape.holds(value):
        assert _accepted(shape, value)
    elif not _has_literals(shape) and shape.base is not object:
        assert not _accepted(shape, value)


def _has_literals(shape: Shape) -> bool:
    """Whether it lists literals at any depth; to pydantic 0 is one for False."""
    return shape.values is not None or (shape.items is not None and _has_literals(shape.items))


def _accepted(shape: Shape, value: object) -> bool:
    annotation: Any = write_shape(shape)
    adapter: TypeAdapter[object] = TypeAdapter(annotation, config=ConfigDict(strict=True))
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True
