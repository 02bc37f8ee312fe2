from __future__ import annotations

import datetime
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from functools import partial
from math import inf, nan
from pathlib import PurePath
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    Never,
    NewType,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
)

import annotated_types as at
import pytest
from hypothesis import given
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    HttpUrl,
    InstanceOf,
    Json,
    JsonValue,
    PlainSerializer,
    SecretStr,
    SkipValidation,
    Strict,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    conint,
)
from typing_extensions import TypeAliasType

from dataforge.errors import ContradictoryCondition, DeclarationError
from dataforge.plan.annotation import Absent, read_shape, write_shape
from dataforge.plan.shape import Shape
from tests.plan.scene import at_least, one_of
from tests.plan.strategies import Colour, shapes, values

read = partial(read_shape, where="field 'x' of Passage")


class Part(BaseModel, frozen=True):
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


T = TypeVar("T")


class Pair(NamedTuple):
    x: int


class Odd: ...


class Shout(str): ...


@dataclass
class Box(Generic[T]):
    x: T


Name = NewType("Name", str)
K = TypeVar("K")
Long = TypeAliasType("Long", Annotated[str, at.MinLen(9)])
Many = TypeAliasType("Many", list[T], type_params=(T,))
Same = TypeAliasType("Same", T, type_params=(T,))
Swapped = TypeAliasType("Swapped", dict[T, K], type_params=(K, T))


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
        (list[str | None], Shape(list, items=Shape(str, maybe=True))),
        (Many[int], Shape(list, items=Shape(int))),
        (Same[int], Shape(int)),
        (typing.Tuple, Shape(tuple)),  # noqa: UP006
        (tuple[Any, ...], Shape(tuple)),
        (tuple[()], Shape(tuple, max_len=0)),
        (tuple[Any, object], Shape(tuple, min_len=2, max_len=2)),
        (dict[Any, object], Shape(dict)),
        (conint(gt=3), Shape(int, low=4)),
        (Annotated[float, at.Ge(-0.0)], Shape(float, low=0)),
        (Annotated[int, PlainSerializer(str)], Shape(int)),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dict[str, int | str], dict[str, Union[str, int]]),  # noqa: UP007
        (dict[str, typing.List[int]], typing.Dict[str, list[int]]),  # noqa: UP006
        (
            dict[str, Annotated[str, at.Len(2, 3)]],
            dict[str, Annotated[str, Field(max_length=3), Field(min_length=2)]],
        ),
        (tuple[Literal["a", "b"], Long], tuple[Literal["b", "a"], Annotated[str, at.MinLen(9)]]),
        (Swapped[int, str], dict[str, int]),
        (dict[str, Any], dict[str, object]),
        (dict[str, Optional[int]], dict[str, int | None]),  # noqa: UP045
    ],
)
def test_two_ways_to_write_the_same_element_types_are_one_mark(one: object, other: object) -> None:
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (dict[str, JsonValue], "dict[str, JsonValue]"),
        (dict[Colour, bool], "dict[Colour, bool]"),
        (dict[str, int | None], "dict[str, int | None]"),
        (
            tuple[Part, Annotated[str, Field(pattern="^x")]],
            "tuple[Part, Annotated[str, StringConstraints(pattern='^x')]]",
        ),
    ],
)
def test_element_types_that_are_not_read_are_said_as_written(annotation: object, said: str) -> None:
    shape = read(annotation)
    assert shape is not None
    assert shape.say() == said


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
        (Literal[nan], "no choice is NaN"),
        (Literal[10**400], "beyond the range of a float"),
        (Literal[int], "choices are text, numbers or members of an Enum"),
        (Literal[None], "None says nothing; write Absent"),
        (Union[int, str], "one type a field"),  # noqa: UP007
        (Optional[Union[int, str]], "one type a field"),  # noqa: UP007, UP045
        (Annotated[int | str, at.Ge(1)], "one type a field"),
        (list[Literal["a", 1]], "its items: cannot read Literal['a', 1]: choices of one type"),
        (dict[str, Callable[[int], str]], "its values: cannot read Callable[[int], str]: a record"),
        (dict[datetime.date, int], "its keys: cannot read date: write str"),
        (tuple[Odd, int], "its items: cannot read Odd: make it a dataclass, or a pydantic model"),
        (tuple[Absent, int], "its items: items cannot be Absent"),
        (set[list[int]], "no list can be in a set; write list[T]"),
        (frozenset[Base], "no Base can be in a set; write list[T], or freeze the class"),
        (Any, "write object for any value at all"),
        (JsonValue, "write object for any value at all"),
        (Never, "no value is one; write Absent"),
        (LiteralString, "write str"),
        (Pair, "cannot read Pair: write a dataclass, or a pydantic model of the same fields"),
        (Box[int], "write Box, or a dataclass of its own for these types"),
        (Odd, "make it a dataclass, or a pydantic model"),
        (Shout, "write str, or a dataclass around one"),
        (SecretStr, "write str, and hold it as text"),
        (HttpUrl, "write str, and hold it as text"),
        (Fraction, "write float, or two fields, each int"),
        (AbstractSet[int], "write set[T]"),
        (Counter, "write dict, or a dataclass around one"),
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
        (Annotated[float, at.Le(10**400)], "a bound lies within the range of a float"),
        (Annotated[str, at.MinLen(-1)], "a length is a whole number, 0 or more"),
        (Annotated[str, at.MultipleOf(3)], "multiples are of int and float, not str"),
        (Annotated[int, Field(pattern="x")], "cannot read pattern 'x': it says nothing of int"),
        (Annotated[str, at.Timezone(None)], "it is for a datetime, which is held as text"),
        (Annotated[str, AfterValidator(str.strip)], "may change the value; use annotated_types"),
        (dict[str, Annotated[str, AfterValidator(str.strip)]], "its values: cannot read After"),
        (Annotated[str, StringConstraints(strip_whitespace=True)], "it may change the value"),
        (Annotated[str, StringConstraints(to_lower=True)], "it may change the value"),
        (Annotated[str, Field(coerce_numbers_to_str=True)], "it may change the value"),
        (Annotated[int, Strict(False)], "a value is taken as it is, and never converted"),
        (Annotated[int, Field(strict=False)], "a value is taken as it is, and never converted"),
        (SkipValidation[int], "it may change the value, or leave it unchecked"),
        (InstanceOf[Base], "it may change the value, or leave it unchecked"),
        (Json[int], "it may change the value, or leave it unchecked"),
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
