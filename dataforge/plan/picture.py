"""A graph as a picture: Mermaid text for a page that renders it, SVG for everything else.

Nodes stand in columns by their longest distance from the source, framed by family; a loop is one
box that names what is inside. Solid edges are tight, dashed ones carried by earlier facts. Nothing
is laid out to avoid crossings: where two families are joined by very many edges, those are drawn
thin, and each takes the colour of the node it leaves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from dataforge.plan.action import Action
from dataforge.plan.graph import Edge, Graph
from dataforge.plan.loop import Loop
from dataforge.plan.shape import Conditions, say

__all__ = ["mermaid", "svg"]


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    ids = {action.name: f"n{number}" for number, action in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for number, (family, members) in enumerate(sorted(_families(graph.nodes).items())):
        lines.append(f'  subgraph f{number}["{_quoted(family)}"]')
        for action in members:
            left, right = _brackets(graph, action)
            text = "<br/>".join(map(_quoted, [_short(action), *_inside(action)]))
            lines.append(f'    {ids[action.name]}{left}"{text}"{right}')
        lines.append("  end")
    for edge in graph.edges():
        arrow = "-->" if edge.kind == "tight" else "-.->"
        lines.append(f"  {ids[edge.before]} {arrow} {ids[edge.after]}")
    return "\n".join(lines) + "\n"


def _brackets(graph: Graph, action: Action) -> tuple[str, str]:
    if action.name in (graph.source, graph.target):
        return "([", "])"
    return ("[[", "]]") if action.inner else ("[", "]")


def _quoted(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;")


def _families(actions: tuple[Action, ...]) -> dict[str, list[Action]]:
    families: dict[str, list[Action]] = defaultdict(list)
    for action in actions:
        families[action.family].append(action)
    return families


def _short(action: Action) -> str:
    """The name without its family, which stands on the frame."""
    return action.name.partition("/")[2] or action.name


def _inside(action: Action) -> list[str]:
    """What a loop or a nested graph holds, in a line or two."""
    if isinstance(action, Loop):
        steps = " → ".join(step.name for step in action.steps)
        times = "once" if action.at_most == 1 else f"at most {action.at_most} times"
        return [steps, f"{times}, until {_met(action.until)}"]
    if isinstance(action, Graph):
        return [f"graph of {len(action.nodes)} nodes, {action.count_walks():,} walks"]
    return []


def _met(conditions: Conditions) -> str:
    return " and ".join(f"{name} is {say(shape)}" for name, shape in conditions.items())


# Lengths are in SVG user units, which a browser shows as pixels.
FONT, SMALL = 13, 11
LINE = 16
LETTER, BOLD_LETTER, SMALL_LETTER = 7.0, 8.4, 5.9
PADDING = 10
BETWEEN = 8
TITLE = 22
BORDER = 14
MARGIN = 24
HEADER = 58
THICKET = 40
"""Edges between two frames from which on they are drawn thin."""

COLOURS = (
    "#4c6a92", "#b0653a", "#4f8a5b", "#8a4f7d", "#a58a2c", "#3f8c94", "#a4505a", "#6b6bb3",
    "#6f7f3a", "#94623f",
)  # fmt: skip

STYLE = f"""
  text {{ font-family: system-ui, "DejaVu Sans", Helvetica, Arial, sans-serif;
         font-size: {FONT}px; fill: #1f2933 }}
  .small {{ font-size: {SMALL}px; fill: #52606d }}
  .head {{ font-size: 17px; font-weight: 600 }}
  .family {{ font-weight: 600; fill: #3e4c59 }}
  .frame {{ fill: #f3f5f7; stroke: #d5dbe1 }}
  .box {{ fill: #ffffff; stroke: #829ab1 }}
  .end {{ stroke: #102a43; stroke-width: 2 }}
  .edge {{ fill: none; stroke-width: 1.4; opacity: .8 }}
  .thin {{ stroke-width: .8; opacity: .45 }}
  .carried {{ stroke-dasharray: 5 4 }}
  .edge {{ marker-end: url(#arrow) }}
  .edge:hover {{ stroke: #000000; stroke-width: 2.5; opacity: 1 }}
"""


ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/>'
    "</marker></defs>"
)


@dataclass(slots=True)
class _Box:
    """A node where it is drawn."""

    action: Action
    lines: list[str]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(slots=True)
class _Frame:
    """The nodes of one family in one column."""

    family: str
    boxes: list[_Box]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        title = BOLD_LETTER * len(self.family) + 2 * BORDER
        return max(title, *(box.width + 2 * BORDER for box in self.boxes))

    @property
    def height(self) -> float:
        boxes = sum(box.height + BETWEEN for box in self.boxes) - BETWEEN
        return TITLE + boxes + 2 * BORDER - PADDING

    def place(self, x: float, y: float, width: float) -> None:
        """Puts the frame's left top corner at (x, y), and every box of it `width` wide."""
        self.x, self.y = x, y
        top = y + TITLE + BORDER - PADDING
        for box in self.boxes:
            box.x, box.y, box.width = x + BORDER, top, width
            top += box.height + BETWEEN


def svg(graph: Graph) -> str:
    """The graph as a self-contained SVG image."""
    columns = _columns(graph)
    edges = graph.edges()
    width, bottom = _placed(columns, edges)
    frames = [frame for column in columns for frame in column]
    foot = list(_foot(graph, width))
    height = bottom + MARGIN + LINE * (len(foot) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">',
        f"<title>{escape(graph.name)}</title>",
        f"<style>{STYLE}</style>",
        ARROW,
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text class="head" x="{MARGIN}" y="{MARGIN + 10}">{escape(graph.name)}</text>',
        f'<text class="small" x="{MARGIN}" y="{MARGIN + 28}">{_summary(graph)}</text>',
        *(_drawn_frame(frame) for frame in frames),
        *_drawn_edges(frames, edges),
        *(_drawn_box(graph, box) for frame in frames for box in frame.boxes),
        *_drawn_foot(foot, bottom),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _columns(graph: Graph) -> list[list[_Frame]]:
    """Frames by column: how far from the source a node can be at most."""
    depth: dict[int, int] = defaultdict(int)
    layer: dict[str, int] = {}
    for state in reversed(list(graph.space.last_first())):
        for action, reached in graph.choices(state):
            depth[reached] = max(depth[reached], depth[state] + 1)
            layer[action.name] = max(layer.get(action.name, 0), depth[state])
    columns = []
    for number in sorted(set(layer.values())):
        here = tuple(action for action in graph.nodes if layer[action.name] == number)
        families = sorted(_families(here).items())
        columns.append([_Frame(family, list(map(_box, members))) for family, members in families])
    return columns


def _box(action: Action) -> _Box:
    lines = [_short(action), *_inside(action)]
    letters = max(LETTER * len(lines[0]), *(SMALL_LETTER * len(line) for line in ["", *lines[1:]]))
    return _Box(action, lines, letters + 2 * PADDING, LINE * len(lines) + PADDING)


def _placed(columns: list[list[_Frame]], edges: tuple[Edge, ...]) -> tuple[float, float]:
    """Gives every box its place; returns the width and bottom of the whole."""
    heights = [
        sum(frame.height for frame in column) + MARGIN * (len(column) - 1) for column in columns
    ]
    tallest = max(heights)
    gap = min(260.0, 90.0 + len(edges) / len(columns))
    x: float = MARGIN
    for column, height in zip(columns, heights, strict=True):
        width = max(frame.width for frame in column) - 2 * BORDER
        y = HEADER + MARGIN + (tallest - height) / 2
        for frame in column:
            frame.place(x, y, width)
            y += frame.height + MARGIN
        x += width + 2 * BORDER + gap
    return max(x - gap + MARGIN, 640.0), HEADER + MARGIN + tallest


def _drawn_frame(frame: _Frame) -> str:
    width = frame.boxes[0].width + 2 * BORDER
    return (
        f'<rect class="frame" x="{frame.x:.1f}" y="{frame.y:.1f}" width="{width:.1f}" '
        f'height="{frame.height:.1f}" rx="10"/>'
        f'<text class="family" x="{frame.x + BORDER:.1f}" y="{frame.y + 18:.1f}">'
        f"{escape(frame.family)}</text>"
    )


def _drawn_edges(frames: list[_Frame], edges: tuple[Edge, ...]) -> Iterator[str]:
    frame_of = {box.action.name: frame for frame in frames for box in frame.boxes}
    box_of = {box.action.name: box for frame in frames for box in frame.boxes}
    colour = {
        box.action.name: COLOURS[number % len(COLOURS)]
        for frame in frames
        for number, box in enumerate(frame.boxes)
    }
    between = Counter((id(frame_of[e.before]), id(frame_of[e.after])) for e in edges)
    for edge in edges:
        before, after = box_of[edge.before], box_of[edge.after]
        many = between[id(frame_of[edge.before]), id(frame_of[edge.after])] >= THICKET
        kinds = f"edge {edge.kind}{' thin' if many else ''}"
        yield (
            f'<path class="{kinds}" stroke="{colour[edge.before]}" d="{_curve(before, after)}">'
            f"<title>{escape(edge.before)} → {escape(edge.after)} ({edge.kind})</title></path>"
        )


def _curve(before: _Box, after: _Box) -> str:
    """From the facing sides; within a column from right side to right side, around the boxes."""
    start, end = before.x + before.width, after.x
    if before.x > after.x + after.width:
        start, end = before.x, after.x + after.width
    reach = (end - start) * 0.45
    first, last = start + reach, end - reach
    if start > end and before.x <= after.x + after.width:
        end = after.x + after.width
        first = last = max(start, end) + 30 + abs(after.middle - before.middle) / 4
    return (
        f"M{start:.1f},{before.middle:.1f} C{first:.1f},{before.middle:.1f} "
        f"{last:.1f},{after.middle:.1f} {end:.1f},{after.middle:.1f}"
    )


def _drawn_box(graph: Graph, box: _Box) -> str:
    action = box.action
    ends = " end" if action.name in (graph.source, graph.target) else ""
    corner = 4 if action.inner else 12
    shape = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    parts = [f"<g><title>{escape(_told(action))}</title>"]
    parts.append(f'<rect class="box{ends}" {shape} rx="{corner}"/>')
    for number, line in enumerate(box.lines):
        y = box.y + PADDING / 2 + LINE * (number + 0.8)
        small = ' class="small"' if number else ""
        parts.append(f'<text{small} x="{box.x + PADDING:.1f}" y="{y:.1f}">{escape(line)}</text>')
    return "".join(parts) + "</g>"


def _told(action: Action) -> str:
    """What a node needs and gives, for the tooltip."""
    needs = [f"needs {name}: {say(shape)}" for name, shape in action.preconditions.items()]
    gives = [f"gives {name}: {say(shape)}" for name, shape in action.postconditions.items()]
    return "\n".join([action.name, *needs, *gives])


def _summary(graph: Graph) -> str:
    shortest, longest = graph.shortest(), graph.longest()
    long = str(longest) if shortest == longest else f"{shortest} to {longest}"
    edges, walks = len(graph.edges()), graph.count_walks()
    walked = f"{walks:,} walk{'' if walks == 1 else 's'} of {long} nodes"
    return f"{len(graph.nodes)} nodes, {edges} edges, {walked}"


def _foot(graph: Graph, width: float) -> Iterator[str]:
    if graph.idle:
        names = ", ".join(action.name for action, _ in graph.idle)
        yield from wrap(f"On no walk: {names}", int((width - 2 * MARGIN) / SMALL_LETTER))


def _drawn_foot(lines: list[str], bottom: float) -> Iterator[str]:
    """The legend, then `lines`."""
    y = bottom + MARGIN
    words = (("tight", "what a node promises is enough"), ("carried", "earlier facts needed too"))
    x = MARGIN
    for kind, meaning in words:
        said = f"{kind}: {meaning}"
        yield f'<path class="edge {kind}" stroke="{COLOURS[0]}" d="M{x},{y - 4} h36"/>'
        yield f'<text class="small" x="{x + 44}" y="{y}">{said}</text>'
        x += 44 + int(SMALL_LETTER * len(said)) + 3 * PADDING
    for number, line in enumerate(lines, start=1):
        yield f'<text class="small" x="{MARGIN}" y="{y + LINE * number}">{escape(line)}</text>'
