"""Which edges are drawn as one: those between the same two frames, where they are too many.

A pair of frames joined by a thicket gets one ribbon, and so does one with a frame of several lanes,
where edges would run behind boxes; if even the rest would be a tangle, every pair does. What a
ribbon holds is then seen node by node (page) or not at all (image).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from dataforge.drawing.layout import Layout, Rect
from dataforge.plan.graph import Edge

__all__ = ["Bundle", "bundle", "curve"]

THICKET = 40
"""Edges between two frames from which on they are one ribbon."""
TANGLE = 250
"""Single edges in a picture from which on every pair of frames gets a ribbon."""
_PORT = 24.0
"""Distance between two ribbons where they leave a frame."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The edges from one frame to another."""

    before: int
    """Place of the frame they leave in `Layout.frames`."""
    after: int
    edges: tuple[Edge, ...]
    ribbon: bool
    """Whether they are drawn as one."""
    leaves: float
    """Where a ribbon begins, above (< 0) or below the middle of its frame."""
    arrives: float

    @property
    def carried(self) -> int:
        """How many of the edges are carried."""
        return sum(edge.kind == "carried" for edge in self.edges)

    @property
    def thickness(self) -> float:
        """Of the ribbon; it grows with the logarithm of the edges."""
        return 1.5 + 1.2 * log2(len(self.edges))


def bundle(layout: Layout, edges: Sequence[Edge]) -> tuple[Bundle, ...]:
    """All edges by the frames they join; ribbons leave and arrive in order, apart."""
    frames = layout.frames
    home = {box.action.name: number for number, each in enumerate(frames) for box in each.boxes}
    pairs: dict[tuple[int, int], list[Edge]] = defaultdict(list)
    for edge in edges:
        pairs[home[edge.before], home[edge.after]].append(edge)
    ribbons = {
        pair
        for pair, inside in pairs.items()
        if len(inside) >= THICKET or any(len(frames[number].lanes) > 1 for number in pair)
    }
    if len(edges) - sum(len(pairs[pair]) for pair in ribbons) >= TANGLE:
        ribbons = set(pairs)
    leaves = _ports(layout, [(here, there) for here, there in ribbons])
    arrives = _ports(layout, [(there, here) for here, there in ribbons])
    return tuple(
        Bundle(
            here,
            there,
            tuple(inside),
            (here, there) in ribbons,
            leaves.get((here, there), 0.0),
            arrives.get((there, here), 0.0),
        )
        for (here, there), inside in sorted(pairs.items())
    )


def _ports(layout: Layout, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """(frame, other frame) -> where the ribbon meets the first, from its middle."""
    frames = layout.frames
    others: dict[int, list[int]] = defaultdict(list)
    for here, there in pairs:
        others[here].append(there)
    found: dict[tuple[int, int], float] = {}
    for here, theirs in others.items():
        theirs.sort(key=lambda number: (frames[number].at.middle, number))
        span = min(_PORT * (len(theirs) - 1), frames[here].at.height * 0.8)
        for place, there in enumerate(theirs):
            share = place / (len(theirs) - 1) - 0.5 if len(theirs) > 1 else 0.0
            found[here, there] = span * share
    return found


def curve(before: Rect, after: Rect, leaves: float = 0.0, arrives: float = 0.0) -> str:
    """An SVG path between facing sides; within a column around it, from right side to right side.

    `leaves` and `arrives` are measured from the middles.
    """
    top, bottom = before.middle + leaves, after.middle + arrives
    if before == after:
        top, bottom = top - 10, bottom + 10
    start, end = before.right, after.x
    if before.x > after.right:
        start, end = before.x, after.right
    first, last = start + (end - start) * 0.45, end - (end - start) * 0.45
    if start > end and before.x <= after.right:
        end = after.right
        first = last = max(start, end) + 30 + abs(bottom - top) / 4
    return (
        f"M{start:.1f},{top:.1f} C{first:.1f},{top:.1f} {last:.1f},{bottom:.1f} "
        f"{end:.1f},{bottom:.1f}"
    )
