"""`dataforge explain`: why one node can follow another, or cannot, field by field."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataforge.commands.options import json_option, library_option
from dataforge.errors import DataForgeError, UsageError

if TYPE_CHECKING:
    from dataforge.library.root import Library
    from dataforge.plan.explain_edge import EdgeWhy
    from dataforge.plan.graph import Graph

__all__ = ["command"]


@click.command(name="explain")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--graph",
    metavar="GRAPH",
    help="The graph to look at, by name or path. Default: the one of the library that holds both.",
)
@library_option
@json_option
def command(
    before: str, after: str, graph: str | None, library: Path | None, as_json: bool
) -> None:
    """Says why node B can directly follow node A on a walk, or why it cannot.

    Each of B's needs is held against what is known once A has run: on a walk that takes the two, or
    on the one that comes nearest to it.

    \b
    Examples:
      dataforge explain transform/diary ask/contextual/argue
      dataforge explain seed/gate sample/chat --graph single_turn_qa --json
    """
    from dataforge.library.root import find_library
    from dataforge.plan.explain_edge import why_edge

    # As a graph's file names it.
    before, after = before.removeprefix("graph:"), after.removeprefix("graph:")
    found = find_library(library)
    chosen = _named(graph, found, before, after) if graph else _holding(found, before, after)
    why = why_edge(chosen, before, after)
    click.echo(json.dumps(_as_data(chosen, why), indent=1) if as_json else _as_text(chosen, why))


def _named(name: str, library: Library, *nodes: str) -> Graph:
    from dataforge.library.graphs import load_graph

    graph = load_graph(name, library).graph
    for node in nodes:
        if node not in _actions(graph):
            raise UsageError(_unknown(node, graph))
    return graph


def _holding(library: Library, *nodes: str) -> Graph:
    """The one graph of the library that holds all the nodes."""
    from dataforge.library.graphs import graph_names, load_graph

    graphs: list[Graph] = []
    for name in graph_names(library):
        try:
            graphs.append(load_graph(name, library).graph)
        except DataForgeError as error:
            click.echo(f"notice: {name} cannot be built: {str(error).splitlines()[0]}", err=True)
    holding = [graph for graph in graphs if all(node in _actions(graph) for node in nodes)]
    if len(holding) == 1:
        return holding[0]
    if holding:
        named = ", ".join(graph.name for graph in holding)
        raise UsageError(f"several graphs hold both: {named}; name one with --graph")
    for node in nodes:
        if not any(node in _actions(graph) for graph in graphs):
            raise UsageError(_unknown(node, *graphs))
    raise UsageError(f"no graph holds both {nodes[0]} and {nodes[1]}; name one with --graph")


def _actions(graph: Graph) -> list[str]:
    assert graph.origin is not None
    return [action.name for action in graph.origin.exploration.needs.actions]


def _unknown(node: str, *graphs: Graph) -> str:
    from dataforge.plan.action import leaves

    where = f"graph {graphs[0].name}" if len(graphs) == 1 else "any graph of the library"
    for graph in graphs:
        for action in graph.nodes:
            if action.inner and node in {leaf.name for leaf in leaves(action)}:
                return (
                    f"{node} is no node of {where} itself: it runs inside {action.name}; "
                    "ask about that"
                )
    names = sorted({name for graph in graphs for name in _actions(graph)})
    near = get_close_matches(node, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{node} is no node of {where}{hint}"


def _as_data(graph: Graph, why: EdgeWhy) -> dict[str, object]:
    from dataforge.plan.shape import say

    return {
        "graph": graph.name,
        "before": why.before,
        "after": why.after,
        "kind": why.kind,
        "reason": why.reason,
        "walk": list(why.walk),
        "needs": [
            {
                "field": need.field,
                "needs": say(need.want),
                "has": say(need.have),
                "met": need.lacking is None,
                "given_by": need.giver,
            }
            for need in why.needs
        ],
    }


def _as_text(graph: Graph, why: EdgeWhy) -> str:
    edge = f"an edge, {why.kind}" if why.kind else "no edge"
    lines = [f"{why.before} -> {why.after}: {edge} (graph {graph.name})", why.reason]
    if why.needs:
        lines.append("")
    for need in why.needs:
        lines.append(f"  {'ok' if need.lacking is None else 'LACKS':5} {need}")
    if why.walk:
        lines += ["", f"on the walk  {' -> '.join(why.walk)}"]
    return "\n".join(lines)
