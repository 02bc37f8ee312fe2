"""`dataforge draw`: the inferred graph as a page to explore, as an image or as Mermaid text."""

from __future__ import annotations

from pathlib import Path

import click

from dataforge.commands.options import library_option
from dataforge.errors import UsageError

__all__ = ["command"]

_SUFFIXES = (".html", ".svg", ".mmd")


@click.command(name="draw")
@click.argument("graph")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write here: .html is a page to explore, .svg an image, .mmd Mermaid. Without it: Mermaid "
    "on stdout.",
)
@library_option
def command(graph: str, out: Path | None, library: Path | None) -> None:
    """Draws GRAPH, by name or path: its nodes and the edges that follow from them.

    Solid edges are tight (the first node's own promises suffice), dashed ones carried by earlier
    facts. Where too many join two families, they are drawn as one that says how many. The page
    opens from disk: click a node for its needs, gives and edges; loops and nested graphs unfold.

    \b
    Examples:
      dataforge draw single_turn_qa --out qa.html
      dataforge draw single_turn_qa --out qa.svg
      dataforge draw single_turn_qa > qa.mmd
    """
    if out is not None and out.suffix not in _SUFFIXES:
        raise UsageError(
            f"--out {out}: {out.suffix or 'a name without a suffix'} cannot be drawn; give a name "
            f"that ends in .html, .svg or .mmd"
        )
    from dataforge.drawing.mermaid import mermaid
    from dataforge.drawing.page import page
    from dataforge.drawing.svg import svg
    from dataforge.library.graphs import load_graph
    from dataforge.library.root import find_library

    loaded = load_graph(graph, find_library(library))
    if out is None:
        click.echo(mermaid(loaded.graph).rstrip("\n"))
        return
    drawn = {".html": page, ".svg": svg, ".mmd": mermaid}[out.suffix]
    _write(out, drawn(loaded.graph))
    click.echo(f"{out}: {len(loaded.graph.nodes)} nodes, {len(loaded.graph.edges())} edges")


def _write(path: Path, text: str) -> None:
    """Writes the whole file or nothing."""
    from dataforge.corpus.atomic import replace_file

    if not path.parent.is_dir():
        raise UsageError(f"--out {path}: there is no folder {path.parent}")
    text = text if text.endswith("\n") else f"{text}\n"
    replace_file(path, lambda beside: beside.write_text(text, encoding="utf-8"))
