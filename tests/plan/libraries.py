"""Hypothesis strategies over small libraries, with drops, rewriters and optional fields."""

from __future__ import annotations

from hypothesis import strategies as st

from dataforge.plan.action import Action
from dataforge.plan.shape import Conditions, Shape
from tests.plan import brute
from tests.plan.scene import acts


def _shape(draw: st.DrawFn) -> Shape | None:
    values = draw(st.frozensets(st.sampled_from(brute.DOMAIN), max_size=3))
    if not values:
        return None
    return Shape(int, frozenset[object](values), maybe=draw(st.booleans()))


@st.composite
def conditions(draw: st.DrawFn) -> Conditions:
    names = draw(st.frozensets(st.sampled_from("abc"), max_size=2))
    return {name: _shape(draw) for name in sorted(names)}


@st.composite
def libraries(draw: st.DrawFn) -> list[Action]:
    count = draw(st.integers(1, 4))
    nodes = [acts(f"n{n}", draw(conditions()), draw(conditions())) for n in range(count)]
    source = acts("source", draw(conditions()), draw(conditions()))
    return [source, *nodes, acts("target", draw(conditions()), {})]
