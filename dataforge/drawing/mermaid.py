"""A graph as Mermaid text, for pages that render it.

Mermaid refuses more than 500 links and 50,000 characters unless the page that renders it says
otherwise. A graph of more edges than `MOST_LINKS` is therefore linked frame by frame, with counts;
which node follows which is then left to the other pictures.
"""

from __future__ import annotations

from dataforge.drawing.bundle import Bundle, bundle
from dataforge.drawing.label import inside, short
from dataforge.drawing.layout import lay_out
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph

__all__ = ["MOST_LINKS", "mermaid"]

MOST_LINKS = 400
"""Edges up to which each is a link of its own."""


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    layout = lay_out(graph)
    edges = graph.edges()
    ids = {action.name: f"n{number}" for number, action in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    counted = len(edges) > MOST_LINKS
    for number, frame in enumerate(layout.frames):
        lines.append(f'  subgraph f{number}["{_quoted(frame.family)}"]')
        # Without links of their own, nodes would stand side by side.
        lines += ["    direction LR"] if counted else []
        lines += [_node(graph, box.action, ids[box.action.name]) for box in frame.boxes]
        lines.append("  end")
    if not counted:
        for edge in edges:
            arrow = "-->" if edge.kind == "tight" else "-.->"
            lines.append(f"  {ids[edge.before]} {arrow} {ids[edge.after]}")
    else:
        lines.append(f"  %% {len(edges)} edges, counted between the frames that they join")
        lines += map(_link, bundle(layout, edges))
    return "\n".join(lines) + "\n"


def _node(graph: Graph, action: Action, number: str) -> str:
    left, right = _brackets(graph, action)
    text = "<br/>".join(map(_quoted, [short(action), *inside(action)]))
    return f'    {number}{left}"{text}"{right}'


def _brackets(graph: Graph, action: Action) -> tuple[str, str]:
    if action.name in (graph.source, graph.target):
        return "([", "])"
    return ("[[", "]]") if action.inner else ("[", "]")


def _link(edges: Bundle) -> str:
    """All edges between two frames as one; Mermaid cannot link a frame to itself."""
    count = len(edges.edges)
    if edges.before == edges.after:
        return f"  %% {count} more within f{edges.before}"
    arrow = "-.->" if edges.carried == count else "-->"
    return f"  f{edges.before} {arrow}|{count}| f{edges.after}"


def _quoted(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;")
