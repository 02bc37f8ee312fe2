"""Hypothesis strategies over shapes, values and small graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum, StrEnum
from math import inf, nan

from hypothesis import strategies as st

from dataforge.errors import ContradictoryCondition
from dataforge.plan.shape import Shape


@dataclass(frozen=True)
class Mark:
    """An annotation that shapes cannot read."""

    name: str


class Colour(Enum):
    RED = 1
    BLUE = 2


class Letter(StrEnum):
    A = "a"
    B = "ab"


class Rank(IntEnum):
    LOW = 1
    HIGH = 4


NUMBERS = st.integers(-4, 4) | st.sampled_from([-2.5, -1.0, 0.5, 1.0, 2.0, 3.5])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "abcd"])
MEMBERS = st.sampled_from([*Colour, *Letter, *Rank])

values: st.SearchStrategy[object] = st.one_of(
    NUMBERS,
    st.sampled_from([nan, inf, -inf]),
    TEXTS,
    st.booleans(),
    MEMBERS,
    st.just(b"ab"),
    st.lists(st.integers(0, 1), max_size=3),
    st.lists(st.sampled_from([0, 2, True, 0.5, "ab", None, b"ab", [1], []]), max_size=3),
    st.lists(st.sampled_from([0, 2, "ab", "abc", None]), max_size=3).map(tuple),
    st.none(),
)


@st.composite
def _numeric(draw: st.DrawFn) -> Shape:
    low, high = sorted([draw(NUMBERS), draw(NUMBERS)])
    return Shape(
        draw(st.sampled_from([int, float])),
        None,
        draw(st.sampled_from([low, -inf])),
        draw(st.sampled_from([high, inf])),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def _sized(draw: st.DrawFn) -> Shape:
    least = draw(st.integers(0, 3))
    most = draw(st.sampled_from([inf, least, least + 1, least + 2]))
    return Shape(draw(st.sampled_from([str, list, bytes])), min_len=least, max_len=most)


@st.composite
def _listed(draw: st.DrawFn) -> Shape:
    limits = draw(st.sampled_from([(0, inf), (1, inf), (0, 2), (1, 1), (0, 0)]))
    leaf = st.one_of(_numeric(), _sized(), _literal())
    leaf |= leaf.map(lambda shape: replace(shape, maybe=True))
    items = draw(leaf | leaf.map(lambda shape: Shape(list, items=shape)))
    return Shape(
        draw(st.sampled_from([list, tuple])), min_len=limits[0], max_len=limits[1], items=items
    )


@st.composite
def _literal(draw: st.DrawFn) -> Shape:
    texts = st.frozensets(TEXTS, min_size=1, max_size=3)
    whole = st.frozensets(st.integers(-3, 3), min_size=1, max_size=3)
    numbers = st.frozensets(NUMBERS, min_size=1, max_size=3)
    base, chosen = draw(
        st.one_of(
            texts.map(lambda some: (str, frozenset[object](some))),
            whole.map(lambda some: (int, frozenset[object](some))),
            numbers.map(lambda some: (float, frozenset[object](some))),
            st.booleans().map(lambda one: (bool, frozenset[object]({one}))),
            MEMBERS.map(lambda one: (type(one), frozenset[object]({one}))),
        )
    )
    return Shape(base, chosen)


_plain = st.sampled_from(
    [Shape(), Shape(bool), Shape(str), Shape(Colour), Shape(Letter), Shape(Rank), Shape(dict)]
)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Any shape over the values above."""

    def tried(strategy: st.SearchStrategy[Shape]) -> Shape | None:
        try:
            return draw(strategy)
        except ContradictoryCondition:
            return None

    shape = tried(st.one_of(_numeric(), _sized(), _literal(), _plain, _listed())) or Shape(int)
    marks = draw(st.frozensets(st.sampled_from([Mark("p"), Mark("q")]), max_size=2))
    return Shape(
        shape.base,
        shape.values,
        shape.low,
        shape.high,
        shape.low_open,
        shape.high_open,
        shape.min_len,
        shape.max_len,
        marks,
        draw(st.booleans()),
        shape.items,
    )


class Every(IntEnum):
    """All whole numbers that shapes speak of, as members, which no literal is."""

    A, B, C, D, E, F, G, H, J, K, L, M, N = range(-6, 7)


class Texts(StrEnum):
    NONE = ""
    ONE = "a"


class Single(float):
    """A float of a class of its own, which no literal is."""


class Bytes(bytes):
    """Likewise."""


def _domain() -> list[object]:
    """Values enough that any two shapes above that differ, marks aside, differ on one of them."""
    quarters = [n / 4 for n in range(-24, 25)]
    leaves: list[object] = [*range(-6, 7), *quarters, *map(Single, quarters), nan, inf, -inf]
    leaves += [True, False, *Every, *Colour, *Letter, *Rank, *Texts]
    leaves += ["", "a", "ab", "abc", "abcd", *("z" * n for n in range(1, 8))]
    leaves += [*(b"z" * n for n in range(8)), *map(Bytes, (b"", b"z"))]
    leaves += [None]
    inner = [*leaves, *([leaf] * n for leaf in leaves for n in (1, 2, 3, 4)), [], {}, ()]
    lists = [[each] * n for each in inner for n in (1, 2, 3)]
    return [{}, object(), *inner, *lists, *map(tuple, lists)]


DOMAIN = _domain()
