"""A node's state as text: all of it, wherever it is kept, and nothing that changes by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import pytest
from pydantic import BaseModel, PrivateAttr

from dataforge import Struct, node


class Passage(Struct):
    passage: str


class Instruction(Struct):
    instruction: str


class Slotted:
    """A node whose state is in slots, one of them private."""

    __slots__ = ("__hidden", "form", "unset")
    unset: str

    def __init__(self, form: str, hidden: int = 0) -> None:
        self.form, self.__hidden = form, hidden

    async def __call__(self, seen: Passage) -> Instruction:
        raise NotImplementedError


class Named(NamedTuple):
    """A node that is a tuple."""

    form: str

    async def __call__(self, seen: Passage) -> Instruction:
        raise NotImplementedError


class Modelled(BaseModel):
    """A node that is a pydantic model, with an attribute of its own."""

    form: str
    _hidden: int = PrivateAttr(default=0)

    async def __call__(self, seen: Passage) -> Instruction:
        raise NotImplementedError


@dataclass
class Later:
    """A node that holds more than its fields, and works some out."""

    form: str

    def __post_init__(self) -> None:
        self.hidden = 0

    @cached_property
    def lock(self) -> object:
        return Lock()

    async def __call__(self, seen: Passage) -> Instruction:
        raise NotImplementedError


def hiding(holder: Modelled | Later, hidden: int) -> Modelled | Later:
    setattr(holder, "_hidden" if isinstance(holder, Modelled) else "hidden", hidden)
    return holder


@pytest.mark.parametrize(
    ("one", "same", "others"),
    [
        (Slotted("ode"), Slotted("ode"), [Slotted("rap"), Slotted("ode", 1)]),
        (Named("ode"), Named("ode"), [Named("rap")]),
        (Modelled(form="ode"), Modelled(form="ode"), [Modelled(form="rap")]),
        (Later("ode"), Later("ode"), [Later("rap")]),
        (Later("ode"), Later("ode"), [hiding(Later("ode"), 1)]),
        (Modelled(form="ode"), Modelled(form="ode"), [hiding(Modelled(form="ode"), 1)]),
    ],
)
def test_state_counts_wherever_an_object_keeps_it(
    one: Callable[[Passage], Awaitable[Instruction]],
    same: Callable[[Passage], Awaitable[Instruction]],
    others: list[Callable[[Passage], Awaitable[Instruction]]],
) -> None:
    assert node(one, name="x").digest == node(same, name="x").digest
    for other in others:
        assert node(other, name="x").digest != node(one, name="x").digest


def test_what_a_cached_property_worked_out_is_no_state() -> None:
    used = Later("ode")
    assert used.lock
    assert node(used, name="x").digest == node(Later("ode"), name="x").digest
