"""A graph as an SVG image that needs nothing beside it.

Solid edges are tight, dashed ones carried by earlier facts. An edge takes the colour of the node it
leaves, a ribbon that of the family; a ribbon says how many edges it holds. Tooltips tell the rest.
A loop or a nested graph is one box; the page (`page.py`) unfolds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap

from dataforge.drawing.bundle import Bundle, bundle, curve
from dataforge.drawing.label import cells, summary, told
from dataforge.drawing.layout import (
    BORDER,
    LINE,
    MARGIN,
    PADDING,
    Box,
    Frame,
    Layout,
    Rect,
    lay_out,
)
from dataforge.plan.graph import Edge, Graph

__all__ = ["COLOURS", "svg"]

COLOURS = (
    "#4c6a92", "#b0653a", "#4f8a5b", "#8a4f7d", "#a58a2c", "#3f8c94", "#a4505a", "#6b6bb3",
    "#6f7f3a", "#94623f",
)  # fmt: skip
_HEADER = 66
_LETTER = 6.0
_LEAST_WIDTH = 640.0
_MOST_COUNTS = 60
"""Ribbons up to which each has its count beside it."""

_STYLE = """
  text { font-family: system-ui, "DejaVu Sans", Helvetica, Arial, sans-serif;
         font-size: 13px; fill: #1f2933 }
  .small { font-size: 11px; fill: #52606d }
  .head { font-size: 17px; font-weight: 600 }
  .family { font-weight: 600; fill: #3e4c59 }
  .stage, .count { text-anchor: middle }
  .frame { fill: #f3f5f7; stroke: #d5dbe1 }
  .box { fill: #ffffff; stroke: #829ab1 }
  .end { stroke: #102a43; stroke-width: 2 }
  .edge { fill: none; stroke-width: 1.4; opacity: .8; marker-end: url(#arrow) }
  .carried { stroke-dasharray: 5 4 }
  .edge:hover { stroke: #000000; stroke-width: 2.5; opacity: 1 }
  .ribbon { fill: none; opacity: .4 }
  .ribbon:hover { opacity: .8 }
  .pill { fill: #ffffff; stroke: #d5dbe1 }
"""

_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/>'
    "</marker></defs>"
)


def svg(graph: Graph) -> str:
    """The graph as a self-contained SVG image."""
    layout = lay_out(graph)
    bundles = bundle(layout, graph.edges())
    width = max(layout.width + 2 * MARGIN, _LEAST_WIDTH)
    bottom = _HEADER + layout.height
    foot = list(_foot(graph, width))
    height = bottom + MARGIN + LINE * (len(foot) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">',
        f"<title>{escape(graph.name)}</title>",
        f"<style>{_STYLE}</style>",
        _ARROW,
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text class="head" x="{MARGIN}" y="{MARGIN + 10}">{escape(graph.name)}</text>',
        f'<text class="small" x="{MARGIN}" y="{MARGIN + 28}">{escape(summary(graph))}</text>',
        f'<g transform="translate({MARGIN} {_HEADER})">',
        *_stages(layout),
        *(_ribbon(layout.frames, each) for each in bundles if each.ribbon),
        *map(_frame, layout.frames),
        *_edges(layout, bundles),
        *(_box(graph, box) for frame in layout.frames for box in frame.boxes),
        *_counts(layout, bundles),
        "</g>",
        *_legend(foot, bottom),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _stages(layout: Layout) -> Iterator[str]:
    for number, at in layout.stages():
        x = at.x + at.width / 2
        yield f'<text class="small stage" x="{x:.1f}" y="12">{number}</text>'


def _frame(frame: Frame) -> str:
    at = frame.at
    return (
        f'<rect class="frame" {_rect(at)} rx="10"/>'
        f'<text class="family" x="{at.x + BORDER:.1f}" y="{at.y + 18:.1f}">'
        f"{escape(frame.family)}</text>"
    )


def _rect(at: Rect) -> str:
    return f'x="{at.x:.1f}" y="{at.y:.1f}" width="{at.width:.1f}" height="{at.height:.1f}"'


def _edges(layout: Layout, bundles: Sequence[Bundle]) -> Iterator[str]:
    places: dict[str, Rect] = {}
    colours: dict[str, str] = {}
    for frame in layout.frames:
        for number, box in enumerate(frame.boxes):
            places[box.action.name] = box.at
            colours[box.action.name] = COLOURS[number % len(COLOURS)]
    for each in bundles:
        if not each.ribbon:
            yield from (_edge(edge, places, colours) for edge in each.edges)


def _edge(edge: Edge, places: dict[str, Rect], colours: dict[str, str]) -> str:
    path = curve(places[edge.before], places[edge.after])
    return (
        f'<path class="edge {edge.kind}" stroke="{colours[edge.before]}" d="{path}">'
        f"<title>{escape(edge.before)} → {escape(edge.after)} ({edge.kind})</title></path>"
    )


def _ribbon(frames: Sequence[Frame], each: Bundle) -> str:
    before, after = frames[each.before], frames[each.after]
    path = curve(before.at, after.at, each.leaves, each.arrives)
    carried = " carried" if each.carried == len(each.edges) else ""
    return (
        f'<path class="ribbon{carried}" stroke="{COLOURS[each.before % len(COLOURS)]}" '
        f'stroke-width="{each.thickness:.1f}" d="{path}">'
        f"<title>{escape(before.family)} → {escape(after.family)}: {len(each.edges)} edges, "
        f"{each.carried} of them carried</title></path>"
    )


def _counts(layout: Layout, bundles: Sequence[Bundle]) -> Iterator[str]:
    """How many edges each ribbon holds, half-way along it."""
    ribbons = [each for each in bundles if each.ribbon]
    if len(ribbons) > _MOST_COUNTS:
        return
    for each in ribbons:
        before, after = layout.frames[each.before].at, layout.frames[each.after].at
        x = (before.right + after.x) / 2
        y = (before.middle + each.leaves + after.middle + each.arrives) / 2
        count = f"{len(each.edges):,}"
        width = _LETTER * cells(count) + PADDING
        yield (
            f'<rect class="pill" x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" '
            f'height="16" rx="8"/>'
            f'<text class="small count" x="{x:.1f}" y="{y + 4:.1f}">{count}</text>'
        )


def _box(graph: Graph, box: Box) -> str:
    action = box.action
    ends = " end" if action.name in (graph.source, graph.target) else ""
    corner = 4 if action.inner else 12
    parts = [f"<g><title>{escape(told(action))}</title>"]
    parts.append(f'<rect class="box{ends}" {_rect(box.at)} rx="{corner}"/>')
    for number, line in enumerate(box.lines):
        y = box.at.y + PADDING / 2 + LINE * (number + 0.8)
        small = ' class="small"' if number else ""
        parts.append(f'<text{small} x="{box.at.x + PADDING:.1f}" y="{y:.1f}">{escape(line)}</text>')
    return "".join(parts) + "</g>"


def _foot(graph: Graph, width: float) -> Iterator[str]:
    if graph.idle:
        names = ", ".join(action.name for action in graph.idle)
        yield from wrap(f"On no walk: {names}", int((width - 2 * MARGIN) / _LETTER))


def _legend(lines: list[str], bottom: float) -> Iterator[str]:
    """The kinds of edges, then `lines`."""
    y = bottom + MARGIN
    words = (("tight", "what a node promises is enough"), ("carried", "earlier facts needed too"))
    x = MARGIN
    for kind, meaning in words:
        said = f"{kind}: {meaning}"
        yield f'<path class="edge {kind}" stroke="{COLOURS[0]}" d="M{x},{y - 4} h36"/>'
        yield f'<text class="small" x="{x + 44}" y="{y}">{said}</text>'
        x += 44 + int(_LETTER * len(said)) + 3 * PADDING
    for number, line in enumerate(lines, start=1):
        yield f'<text class="small" x="{MARGIN}" y="{y + LINE * number}">{escape(line)}</text>'
