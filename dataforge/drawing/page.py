"""A graph as one HTML page to explore: pan, zoom, search, click a node, unfold what is nested.

Everything is in the one file, so it opens from disk and without a network; the same graph gives the
same bytes. Places are worked out here, and the script only draws and moves them. What is nested is
a picture of its own beside the whole's, kept once however often it is used.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import TypeAlias

from dataforge.drawing.bundle import Bundle, bundle
from dataforge.drawing.label import kind, met, summary
from dataforge.drawing.layout import HEADER, Box, Column, Rect, lay_out
from dataforge.drawing.svg import COLOURS
from dataforge.plan.action import Action
from dataforge.plan.graph import Edge, Graph
from dataforge.plan.loop import Loop
from dataforge.plan.shape import say

__all__ = ["page"]

Data: TypeAlias = "str | int | float | bool | Sequence[Data] | Mapping[str, Data] | None"
"""What JSON can hold."""


def page(graph: Graph) -> str:
    """The graph as a self-contained HTML page."""
    hues = "".join(f" --hue-{number}: {colour};" for number, colour in enumerate(COLOURS))
    style = f":root {{{hues} }}\n{_asset('page.css')}"
    script = _asset("page.js") + _asset("explore.js")
    content = {"hues": len(COLOURS), "header": HEADER, "scenes": _scenes(graph)}
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Template(_asset("page.html")).substitute(
        title=escape(graph.name),
        style=style,
        style_hash=_fingerprint(style),
        script=script,
        script_hash=_fingerprint(script),
        data=data.replace("<", "\\u003c"),
    )


def _asset(name: str) -> str:
    return files("dataforge.drawing").joinpath(name).read_text(encoding="utf-8")


def _fingerprint(text: str) -> str:
    """By which the page's own policy knows the one script, or style, that it may obey."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _scenes(graph: Graph) -> list[Data]:
    """The graph's picture, then that of each graph or loop inside it, at any depth."""
    found = [graph]
    number = {id(graph.nodes): 0}
    for scene in found:
        for action in scene.nodes:
            body = _body(action)
            if body is not None and id(body.nodes) not in number:
                number[id(body.nodes)] = len(found)
                found.append(body)
    return [_scene(each, number) for each in found]


def _body(action: Action) -> Graph | None:
    if isinstance(action, Loop):
        return action.body
    return action if isinstance(action, Graph) else None


def _scene(graph: Graph, scenes: Mapping[int, int]) -> Data:
    layout, edges = lay_out(graph), graph.edges()
    boxes = [box for frame in layout.frames for box in frame.boxes]
    number = {box.action.name: place for place, box in enumerate(boxes)}
    return {
        "name": graph.name,
        "summary": summary(graph),
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "source": number[graph.source],
        "target": number[graph.target],
        "columns": [_column(column) for column in layout.columns],
        "nodes": [_node(box, scenes) for box in boxes],
        "edges": _followers(number, edges),
        "bundles": [_bundle(each) for each in bundle(layout, edges)],
        "idle": [action.name for action in graph.idle],
    }


def _rect(at: Rect) -> list[float]:
    return [round(length, 1) for length in (at.x, at.y, at.width, at.height)]


def _column(column: Column) -> Data:
    """Its frames, each with its lanes as counts of nodes, which are numbered in that order."""
    frames: list[Data] = [
        {
            "family": frame.family,
            "at": _rect(frame.at),
            "lanes": [len(lane) for lane in frame.lanes],
        }
        for frame in column.frames
    ]
    return {"stage": column.stage, "frames": frames}


def _node(box: Box, scenes: Mapping[int, int]) -> Data:
    action = box.action
    body = _body(action)
    needs: list[Data] = [
        [field, say(shape), field not in action.preconditions]
        for field, shape in sorted(action.requires.items())
    ]
    return {
        "name": action.name,
        "kind": kind(action),
        "lines": box.lines,
        "at": _rect(box.at),
        "needs": needs,
        "gives": [
            [field, "dropped" if shape is None else say(shape)]
            for field, shape in sorted(action.postconditions.items())
        ],
        "about": _about(action),
        "inside": None if body is None else scenes[id(body.nodes)],
    }


def _about(action: Action) -> Data:
    """All else there is to say about a node: what of, and what."""
    about: list[tuple[str, str]] = []
    if isinstance(action, Loop):
        about.append(("steps", " → ".join(step.name for step in action.steps)))
        about.append(("until", met(action.until)))
        about.append(("at most", "once" if action.at_most == 1 else f"{action.at_most} times"))
        if action.critique is not None:
            about.append(("critique from", action.critique))
    if isinstance(action, Graph):
        about.append(("holds", summary(action)))
        about.append(("from, to", f"{action.source} → {action.target}"))
    if action.judges is not None:
        about.append(("judges", action.judges))
    if action.roles:
        about.append(("roles", ", ".join(f"{name} ({of})" for name, of in action.roles.items())))
    about.append(("weight", f"{action.weight:g}"))
    if action.tags:
        about.append(("tags", ", ".join(sorted(action.tags))))
    return about


def _followers(number: Mapping[str, int], edges: Sequence[Edge]) -> Data:
    """Each node's followers, tight and carried; as numbers, which keeps large graphs small."""
    tight: dict[int, list[int]] = defaultdict(list)
    carried: dict[int, list[int]] = defaultdict(list)
    for edge in edges:
        into = tight if edge.kind == "tight" else carried
        into[number[edge.before]].append(number[edge.after])
    return [[sorted(tight[place]), sorted(carried[place])] for place in range(len(number))]


def _bundle(each: Bundle) -> Data:
    return {
        "from": each.before,
        "to": each.after,
        "count": len(each.edges),
        "carried": each.carried,
        "ribbon": each.ribbon,
        "width": round(each.thickness, 1),
        "leaves": round(each.leaves, 1),
        "arrives": round(each.arrives, 1),
    }
