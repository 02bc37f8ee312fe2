"""`dataforge draw`: the inferred graph as a picture, as Mermaid text or as SVG."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dataforge.commands.options import library_option
from dataforge.errors import UsageError

__all__ = ["command"]


@click.command(name="draw")
@click.argument("graph")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write here; .svg is a picture, .mmd is Mermaid. Without it: Mermaid on stdout.",
)
@library_option
def command(graph: str, out: Path | None, library: Path | None) -> None:
    """Draws GRAPH, by name or path: its nodes and the edges that follow from them.

    Solid arrows are tight (the first node's own promises suffice), dashed ones carried by earlier
    facts. A loop is one box that names what is inside.

    \b
    Examples:
      dataforge draw single_turn_qa --out qa.svg
      dataforge draw single_turn_qa > qa.mmd
    """
    if out is not None and out.suffix not in (".svg", ".mmd"):
        raise UsageError(
            f"--out {out}: {out.suffix or 'a name without a suffix'} cannot be drawn; give a name "
            f"that ends in .svg or .mmd"
        )
    from dataforge.library.graphs import load_graph
    from dataforge.library.root import find_library
    from dataforge.plan.picture import mermaid, svg

    loaded = load_graph(graph, find_library(library))
    if out is None:
        click.echo(mermaid(loaded.graph).rstrip("\n"))
        return
    _write(out, svg(loaded.graph) if out.suffix == ".svg" else mermaid(loaded.graph))
    click.echo(f"{out}: {len(loaded.graph.nodes)} nodes, {len(loaded.graph.edges())} edges")


def _write(path: Path, text: str) -> None:
    """Writes the whole file or nothing."""
    if not path.parent.is_dir():
        raise UsageError(f"--out {path}: there is no folder {path.parent}")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    partial.replace(path)
