"""Where everything in a picture stands: stages from left to right, families framed.

A node's stage is its longest distance from the source, so a step usually runs to the right. A large
frame is cut into lanes, and a stage of very many frames into columns, so that the whole keeps the
proportions of a screen. Nothing is laid out to avoid crossings: names in alphabetical order are
found sooner. The same graph always gives the same places.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from math import ceil, inf, log

from dataforge.drawing.label import cells, lines
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph

__all__ = ["Box", "Column", "Frame", "Layout", "Rect", "lay_out"]

# Lengths are in SVG user units, which a browser shows as pixels at a zoom of 1.
LINE = 16
PADDING = 10
BORDER = 14
TITLE = 26
MARGIN = 24
HEADER = 26
"""Height above the columns, for the names of the stages."""

_LETTER, _BOLD, _SMALL = 7.6, 8.4, 6.2
_BETWEEN = 8
_GAP = 110.0
"""Least distance between two stages; more where many edges run."""
_ROWS = 24
"""Boxes up to which a column is never cut."""
_PROPORTION = 1.7
"""Width to height that is aimed at where a picture is cut into more columns."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle; `x` and `y` are its left top corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Half-way down."""
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        """The right side."""
        return self.x + self.width


@dataclass(frozen=True, slots=True)
class Box:
    """A node where it is drawn."""

    action: Action
    lines: tuple[str, ...]
    at: Rect


@dataclass(frozen=True, slots=True)
class Frame:
    """The nodes of one family in one stage."""

    family: str
    lanes: tuple[tuple[Box, ...], ...]
    """Boxes side by side, each lane from top to bottom."""
    at: Rect

    @property
    def boxes(self) -> tuple[Box, ...]:
        """All boxes, by name."""
        return tuple(box for lane in self.lanes for box in lane)


@dataclass(frozen=True, slots=True)
class Column:
    """Frames of one stage above each other."""

    stage: int
    """Counted from 1."""
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A graph's picture, placed; `width` and `height` hold all of it and no margin."""

    columns: tuple[Column, ...]
    width: float
    height: float

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All frames, from left to right and top to bottom."""
        return tuple(frame for column in self.columns for frame in column.frames)

    def stages(self) -> tuple[tuple[int, Rect], ...]:
        """The number and extent of each stage."""
        found: dict[int, Rect] = {}
        for column in self.columns:
            left = column.frames[0].at.x
            right = max(frame.at.right for frame in column.frames)
            left = min(left, found[column.stage].x) if column.stage in found else left
            found[column.stage] = Rect(left, 0, right - left, self.height)
        return tuple(found.items())


@dataclass(frozen=True, slots=True)
class _Sized:
    """A box that has no place yet."""

    action: Action
    lines: tuple[str, ...]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Stack:
    """A frame that has no place yet."""

    family: str
    lanes: tuple[tuple[_Sized, ...], ...]

    @property
    def box_width(self) -> float:
        """The width that each box is given: of the widest, and enough for the title."""
        title = _BOLD * (cells(self.family) + 6) / len(self.lanes)
        return max(title, *(box.width for lane in self.lanes for box in lane))

    @property
    def height(self) -> float:
        return TITLE + max(map(_high, self.lanes)) + BORDER


def lay_out(graph: Graph) -> Layout:
    """The places of all that is in a graph's picture."""
    families = [_families(actions) for actions in _stages(graph)]
    gap = min(220.0, _GAP + len(graph.edges()) / len(families))
    tallest = max(sum(map(_alone, stage.values())) for stage in families)
    least = _ROWS * (LINE + PADDING + _BETWEEN)
    if tallest <= least:
        return _placed([[_cut(stage, 1)] for stage in families], gap)
    limits = [least * 1.2**step for step in range(ceil(log(tallest / least, 1.2)) + 1)]
    tried = [_placed([_flowed(stage, limit) for stage in families], gap) for limit in limits]
    return min(tried, key=lambda layout: abs(log(layout.width / layout.height / _PROPORTION)))


def _stages(graph: Graph) -> list[tuple[Action, ...]]:
    """The nodes by how far from the source they can be at most; nearest first."""
    follow = {graph.start: graph.choices(graph.start)}
    waiting = [graph.start]
    while waiting:
        for _, reached in follow[waiting.pop()]:
            if reached not in follow:
                follow[reached] = graph.choices(reached)
                waiting.append(reached)
    order = TopologicalSorter({state: {to for _, to in arcs} for state, arcs in follow.items()})
    depth: dict[int, int] = defaultdict(int)
    stage: dict[str, int] = defaultdict(int)
    for state in reversed(list(order.static_order())):
        for action, reached in follow[state]:
            depth[reached] = max(depth[reached], depth[state] + 1)
            stage[action.name] = max(stage[action.name], depth[state])
    return [
        tuple(action for action in graph.nodes if stage[action.name] == number)
        for number in sorted(set(stage.values()))
    ]


def _families(actions: Sequence[Action]) -> dict[str, list[_Sized]]:
    families: dict[str, list[_Sized]] = defaultdict(list)
    for action in sorted(actions, key=lambda action: _counting(action.name)):
        families[action.family].append(_sized(action))
    return {family: families[family] for family in sorted(families, key=_counting)}


def _counting(name: str) -> list[str | tuple[int, str]]:
    """Sorts names by letter, and the numbers in them by size."""
    parts = re.split("([0-9]+)", name)
    return [(int(part), part) if place % 2 else part for place, part in enumerate(parts)]


def _sized(action: Action) -> _Sized:
    said = lines(action)
    widths = [_LETTER * cells(said[0]), *(_SMALL * cells(line) for line in said[1:])]
    handle = 22 if action.inner else 0
    return _Sized(action, said, max(widths) + handle + 2 * PADDING, LINE * len(said) + PADDING)


def _high(boxes: Sequence[_Sized]) -> float:
    return sum(box.height + _BETWEEN for box in boxes) - _BETWEEN


def _alone(boxes: Sequence[_Sized]) -> float:
    """The height of a frame of one lane, and of the space below it."""
    return TITLE + _high(boxes) + BORDER + MARGIN


def _cut(stage: dict[str, list[_Sized]], most: int) -> list[_Stack]:
    """A stage's frames, each of `most` lanes at most."""
    stacks = []
    for family, boxes in stage.items():
        rows = ceil(len(boxes) / most)
        lanes = tuple(tuple(boxes[at : at + rows]) for at in range(0, len(boxes), rows))
        stacks.append(_Stack(family, lanes))
    return stacks


def _flowed(stage: dict[str, list[_Sized]], limit: float) -> list[list[_Stack]]:
    """A stage's frames in one column of as few lanes as fit under the limit.

    Where frames are too many for that, they flow through several columns, as text does.
    """
    longest = max(map(len, stage.values()))
    for most in range(1, longest + 1):
        stacks = _cut(stage, most)
        if _column_height(stacks) <= limit:
            return [stacks]
    columns: list[list[_Stack]] = []
    room = -inf
    for stack in _cut(stage, ceil(max(map(_alone, stage.values())) / limit)):
        if stack.height > room:
            columns.append([])
            room = limit
        columns[-1].append(stack)
        room -= stack.height + MARGIN
    return columns


def _placed(stages: Sequence[Sequence[Sequence[_Stack]]], gap: float) -> Layout:
    """Puts stages beside each other, and every column half-way down."""
    tallest = max(_column_height(column) for stage in stages for column in stage)
    columns: list[Column] = []
    x = 0.0
    for number, stage in enumerate(stages, start=1):
        for column in stage:
            y = HEADER + (tallest - _column_height(column)) / 2
            frames = tuple(_frames(column, x, y))
            columns.append(Column(number, frames))
            x = max(frame.at.right for frame in frames) + MARGIN
        x += gap - MARGIN
    return Layout(tuple(columns), x - gap, HEADER + tallest)


def _column_height(column: Sequence[_Stack]) -> float:
    return sum(stack.height + MARGIN for stack in column) - MARGIN


def _frames(column: Sequence[_Stack], x: float, y: float) -> Iterator[Frame]:
    box_width = max(stack.box_width for stack in column)
    for stack in column:
        lanes = []
        for number, lane in enumerate(stack.lanes):
            left = x + BORDER + number * (box_width + _BETWEEN)
            lanes.append(tuple(_boxes(lane, left, y + TITLE, box_width)))
        width = len(lanes) * (box_width + _BETWEEN) - _BETWEEN + 2 * BORDER
        yield Frame(stack.family, tuple(lanes), Rect(x, y, width, stack.height))
        y += stack.height + MARGIN


def _boxes(lane: Sequence[_Sized], x: float, y: float, width: float) -> Iterator[Box]:
    for sized in lane:
        yield Box(sized.action, sized.lines, Rect(x, y, width, sized.height))
        y += sized.height + _BETWEEN
