"""`dataforge check`: builds a graph without running it, and shows what follows from its nodes."""

from __future__ import annotations

import json
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataforge.commands.options import json_option, library_option
from dataforge.errors import DataForgeError, LibraryError

if TYPE_CHECKING:
    from dataforge.library.graphs import LoadedGraph
    from dataforge.library.root import Library
    from dataforge.plan.graph import Graph
    from dataforge.plan.shape import Conditions

__all__ = ["command"]

_WIDTH = 100
_MOST_EDGES = 1_000
"""Edges beyond which they are counted by family; --json lists them all the same."""


@click.command(name="check")
@click.argument("graph", required=False)
@library_option
@json_option
def command(graph: str | None, library: Path | None, as_json: bool) -> None:
    """Validates GRAPH, by name or path, and lists the edges that follow from its nodes.

    An edge is tight when the first node's own promises meet the second one's needs, and carried
    when facts from earlier on the walk help. A node that a pattern matched but that lies on no walk
    is a notice, with what it lacks. Without GRAPH, checks every graph of the library and lists its
    nodes. No model is called.

    \b
    Examples:
      dataforge check single_turn_qa
      dataforge check graphs/mine.toml --library my_lib
      dataforge check single_turn_qa --json | jq .walks
    """
    from dataforge.library.graphs import load_graph
    from dataforge.library.root import find_library

    found = find_library(library)
    if graph is None:
        _check_all(found, as_json)
        return
    loaded = load_graph(graph, found)
    _check_roles(loaded, found)
    click.echo(json.dumps(_as_data(loaded), indent=1) if as_json else _as_text(loaded))


def _check_all(library: Library, as_json: bool) -> None:
    from dataforge.library.catalogue import Catalogue
    from dataforge.library.graphs import graph_names, load_graph

    names = list(Catalogue.of(library).nodes)
    graphs: dict[str, str] = {}
    faults: dict[str, str] = {}
    for name in graph_names(library):
        try:
            loaded = load_graph(name, library)
            _check_roles(loaded, library)
        except DataForgeError as error:
            faults[name] = str(error)
            continue
        graphs[name] = f"{len(loaded.graph.nodes)} nodes, {loaded.graph.count_walks():,} walks"
    if as_json:
        click.echo(json.dumps({"graphs": graphs, "faults": faults, "nodes": names}, indent=1))
    else:
        click.echo(f"library: {library.said()}\n\ngraphs")
        for name, said in graphs.items():
            click.echo(f"  {name}: {said}")
        for name, fault in faults.items():
            click.echo(f"  {name}: FAULTY: {fault.splitlines()[0]}")
        click.echo("\nnodes")
        click.echo(_families(names))
    if faults:
        raise DataForgeError(
            f"{len(faults)} of {len(graphs) + len(faults)} graphs cannot be built; "
            f"`dataforge check {next(iter(faults))}` says why"
        )


def _check_roles(loaded: LoadedGraph, library: Library) -> None:
    """Whether the graph's own bindings can be read; LibraryError for the first that cannot."""
    from dataforge.library.tables import shown
    from dataforge.models.pool import read_pool

    for role, spec in loaded.roles.items():
        word, _, judge = spec.partition(":")
        try:
            if word == "code" and loaded.graph.roles[role] == "judge":
                library.find("judges", judge, ".py")
            elif word != "workers":
                # Which workers there are is of the moment; whether a model can be is not.
                read_pool(spec)
        except DataForgeError as error:
            raise LibraryError(f"{shown(loaded.path)}: role {role!r}: {error}") from None


def _families(names: Collection[str]) -> str:
    """Names with one line a family, such as `transform/ debate, dialogue`."""
    families: dict[str, list[str]] = defaultdict(list)
    for name in names:
        above, slash, last = name.rpartition("/")
        families[above + slash].append(last)
    return "\n".join(
        _wrapped(f"  {family} " if family else "  ", members, ", ")
        for family, members in sorted(families.items())
    )


def _as_data(loaded: LoadedGraph) -> dict[str, object]:
    from dataforge.plan.overlap import overlaps

    graph = loaded.graph
    return {
        "graph": graph.name,
        "file": str(loaded.path),
        "description": loaded.description,
        "source": graph.source,
        "target": graph.target,
        "idle": [node.name for node in graph.idle],
        "nodes": [
            {"name": node.name, "needs": _said(node.requires), "gives": _said(node.postconditions)}
            for node in graph.nodes
        ],
        "edges": [
            {"before": edge.before, "after": edge.after, "kind": edge.kind}
            for edge in graph.edges()
        ],
        "walks": graph.count_walks(),
        "shortest": graph.shortest(),
        "longest": graph.longest(),
        "roles": {role: loaded.roles.get(role) for role in graph.roles},
        "policy": loaded.policy,
        "weights_rule": _weights_rule(loaded),
        "overlaps": list(overlaps(graph)),
        "notices": list(loaded.notices),
        "digest": graph.digest,
    }


def _said(conditions: Conditions) -> dict[str, str]:
    from dataforge.plan.shape import say

    return {field: say(shape) for field, shape in conditions.items()}


def _as_text(loaded: LoadedGraph) -> str:
    from dataforge.plan.overlap import overlaps

    graph, edges = loaded.graph, loaded.graph.edges()
    tight = sum(edge.kind == "tight" for edge in edges)
    shortest, longest = graph.shortest(), graph.longest()
    length = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
    roles = [f"{role} = {loaded.roles.get(role, '(to be bound)')}" for role in graph.roles]
    lines = [
        f"{graph.name} ({loaded.path}): fits together",
        *([loaded.description] if loaded.description else []),
        "",
        f"  walks   {graph.count_walks():,}, each of {length} nodes{_as_one(graph)}",
        f"  nodes   {len(graph.nodes)}",
        f"  edges   {len(edges)}: {tight} tight, {len(edges) - tight} carried",
        _wrapped("  takes   ", _facts(graph.preconditions), "; "),
        _wrapped("  gives   ", _facts(graph.postconditions), "; "),
        _wrapped("  roles   ", roles, ", "),
        *(_wrapped("  rule    ", [rule], "") for rule in _weights_rule(loaded)),
        *([f"  policy  {loaded.policy}"] if loaded.policy != "uniform" else []),
        "",
        "edges (-> tight, ..> carried by earlier facts)",
    ]
    lines += _edge_lines(graph) if len(edges) <= _MOST_EDGES else _family_lines(graph)
    if found := overlaps(graph):
        lines += ["", "ambiguous overlaps", *(_wrapped("  ", [each], "") for each in found)]
    if loaded.notices:
        lines += ["", "notices", *(f"  {notice}" for notice in loaded.notices)]
    return "\n".join(lines)


def _as_one(graph: Graph) -> str:
    """What a length counts as one, though walks differ inside it."""
    from dataforge.plan.graph import Graph

    nested = sorted(node.name for node in graph.nodes if isinstance(node, Graph))
    return f"; all of {' or of '.join(nested)} counts as one" if nested else ""


def _weights_rule(loaded: LoadedGraph) -> list[str]:
    """Which roles must not share weights, and whether the graph's own bindings would."""
    from dataforge.plan.judged import judged_roles

    judged: dict[str, list[str]] = defaultdict(list)
    for judge, writer in sorted(judged_roles(loaded.graph)):
        judged[judge].append(writer)
    rules = []
    for judge, writers in judged.items():
        rule = f"{judge} judges what {' and '.join(writers)} wrote, and must be of other weights"
        same = [writer for writer in writers if _same(loaded, judge, writer)]
        if same:
            rule += f"; bound to the same as {' and '.join(same)} here, it may not: use --model"
        rules.append(rule)
    return rules


def _same(loaded: LoadedGraph, one: str, other: str) -> bool:
    return one in loaded.roles and loaded.roles[one] == loaded.roles.get(other)


def _edge_lines(graph: Graph) -> list[str]:
    """The edges from source to target; nodes with the same edges stand together."""
    after: dict[tuple[str, str], set[str]] = defaultdict(set)
    for edge in graph.edges():
        after[edge.before, "->" if edge.kind == "tight" else "..>"].add(edge.after)
    alike: dict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    for before in _in_order(graph):
        for arrow in ("->", "..>"):
            if (before, arrow) in after:
                alike[arrow, frozenset(after[before, arrow])].append(before)
    lines: list[str] = []
    for (arrow, ends), befores in alike.items():
        lines += [
            _wrapped("  ", _braced(befores), ", "),
            _wrapped(f"      {arrow} ", _braced(ends), ", "),
        ]
    return lines


def _family_lines(graph: Graph) -> list[str]:
    """How many edges lead from family to family, and how to see single ones."""
    family = {node.name: node.family for node in graph.nodes}
    counts = Counter((family[e.before], e.kind, family[e.after]) for e in graph.edges())
    families = dict.fromkeys(family[name] for name in _in_order(graph))
    order = {each: place for place, each in enumerate(families)}
    lines = [
        f"  {before} {'->' if kind == 'tight' else '..>'} {after}: {count:,}"
        for (before, kind, after), count in sorted(
            counts.items(), key=lambda each: (order[each[0][0]], order[each[0][2]], each[0][1])
        )
    ]
    return [*lines, "  (counted by family; --json lists each, `draw --out graph.html` shows them)"]


def _in_order(graph: Graph) -> list[str]:
    """All nodes by when a walk can first reach them."""
    after: dict[str, list[str]] = defaultdict(list)
    for edge in graph.edges():
        after[edge.before].append(edge.after)
    order = dict.fromkeys([graph.source])
    waiting = [graph.source]
    for name in waiting:
        new = [each for each in after[name] if each not in order]
        order |= dict.fromkeys(new)
        waiting += new
    return list(order)


def _braced(names: Collection[str]) -> list[str]:
    """Names of one family as one, such as `ask/{argue, compare}`."""
    families: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        above, slash, last = name.rpartition("/")
        families[above + slash].append(last)
    return [
        f"{above}{lasts[0]}" if len(lasts) == 1 else f"{above}{{{', '.join(lasts)}}}"
        for above, lasts in families.items()
    ]


def _facts(conditions: Conditions) -> list[str]:
    return [f"{field}: {said}" for field, said in _said(conditions).items()]


def _wrapped(head: str, words: Collection[str], between: str) -> str:
    """Words after a head, further lines indented to stand below the first."""
    return textwrap.fill(
        between.join(words),
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), 12),
        break_long_words=False,
        break_on_hyphens=False,
    )
