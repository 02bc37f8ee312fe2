from __future__ import annotations

from enum import Enum, IntEnum

import pytest

from dataforge.plan.bases import below, common


class Rank(IntEnum):
    LOW = 1


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(int, float), (int, int), (Rank, int), (Rank, float), (bool, object), (str, str)],
)
def test_a_type_is_below_what_holds_all_its_values(narrow: type, wide: type) -> None:
    assert below(narrow, wide)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(bool, int), (bool, float), (float, int), (str, int), (object, str), (Colour, int)],
)
def test_a_bool_is_no_number_and_a_float_no_int(narrow: type, wide: type) -> None:
    assert not below(narrow, wide)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (int, float, float),
        (bool, int, object),
        (bool, bool, bool),
        (Rank, int, int),
        (Rank, float, float),
        (Rank, Colour, Enum),
        (str, list, object),
    ],
)
def test_common_is_the_narrowest_type_above_both(one: type, other: type, both: type) -> None:
    assert common(one, other) is both
    assert common(other, one) is both
