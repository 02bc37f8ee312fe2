"""What the tests of the plan build graphs from: nodes made of conditions, and ready shapes."""

from __future__ import annotations

from collections.abc import Mapping

from dataforge.plan.node import Node
from dataforge.plan.shape import Shape
from dataforge.plan.struct import Struct, struct_of

TEXT = Shape(str)


def one_of(*values: object) -> Shape:
    """The shape of a few values of one type."""
    return Shape(values=frozenset(values))


def at_least(length: int) -> Shape:
    """The shape of a text of at least `length` characters."""
    return Shape(str, min_len=length)


def acts(
    name: str,
    needs: Mapping[str, Shape | None],
    gives: Mapping[str, Shape | None],
    *,
    roles: Mapping[str, str] | None = None,
    weight: float = 1.0,
    judges: str | None = None,
    source: str = "",
) -> Node[Struct, Struct]:
    """A node with these conditions; it is planned with, never run."""

    async def run(taken: Struct) -> Struct:
        raise NotImplementedError

    return Node(
        name=name,
        takes=struct_of("Needs", needs),
        makes=struct_of("Gives", gives),
        run=run,
        roles=roles or {},
        weight=weight,
        judges=judges,
        source=source or name,
    )
