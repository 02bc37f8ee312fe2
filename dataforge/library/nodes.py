"""Nodes of a library: Python files with `@node` functions, and TOML files with prompt nodes.

A node's name is its file's path under nodes/ and then its own name, which is left out where it
equals the file's: `nodes/transform.toml [haiku]`, `nodes/transform/haiku.toml` and `haiku` in
`nodes/transform/haiku.py` are all `transform/haiku`. A Python file's nodes are those its public
names stand for, alone or in a list, tuple or dict, as a family made in a loop is; one that the file
makes and no name holds is refused, so that none is lost unseen. Every file of every layer is read
each time: a library is dozens of files, and reading them takes milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dataforge.errors import DeclarationError, DuplicateName, LibraryError
from dataforge.library.modules import load_module
from dataforge.library.prompt_table import KEYS, MadeNode, prompt_node
from dataforge.library.root import Library
from dataforge.library.tables import Table, line_at, named, nearest, read_table, shown
from dataforge.plan.node import DECLARED, Declared, Node
from dataforge.plan.struct import Struct

__all__ = ["AnyNode", "declared_at", "file_nodes", "layer_nodes", "load_nodes", "table_header"]

AnyNode = Node[Struct, Struct]


def load_nodes(library: Library) -> dict[str, AnyNode]:
    """Name -> node over all layers, the uppermost winning; sorted by name."""
    nodes: dict[str, AnyNode] = {}
    for layer in reversed(library.layers()):
        nodes |= layer_nodes(layer)
    return dict(sorted(nodes.items()))


def layer_nodes(layer: Library) -> dict[str, AnyNode]:
    """Name -> node of one layer alone; DuplicateName for two nodes of one name."""
    return {name: node for name, (node, _) in _placed(layer).items()}


def declared_at(layer: Library, name: str) -> str:
    """File and line where a node of one layer is declared; the file where the line is unknown."""
    return _place(*_placed(layer)[name])


def _placed(layer: Library) -> dict[str, tuple[AnyNode, Path]]:
    """Name -> node of one layer, and its file."""
    nodes: dict[str, tuple[AnyNode, Path]] = {}
    for path in layer.files("nodes", ".py", ".toml"):
        for node in file_nodes(layer, path):
            if node.name in nodes:
                first, second = _place(*nodes[node.name]), _place(node, path)
                where = f"one in {first} and one in {second}" if first != second else f"in {first}"
                raise DuplicateName(
                    f"two nodes are named {node.name!r}: {where}; rename one of them"
                )
            nodes[node.name] = (node, path)
    return nodes


def _place(node: AnyNode, path: Path) -> str:
    if node.declared is not None:
        return f"{shown(path)}:{node.declared.line}"
    return line_at(path, table_header(node.name.rpartition("/")[2]))


def table_header(name: str) -> str:
    """A regular expression for the header of a table of a TOML file."""
    return rf"""^\s*\[\s*["']?{re.escape(name)}["']?\s*\]"""


def file_nodes(layer: Library, path: Path) -> Iterator[AnyNode]:
    """The nodes of one file under nodes/, at least one."""
    stem = path.relative_to(layer.root / "nodes").with_suffix("").as_posix()
    yield from _from_python(layer, path, stem) if path.suffix == ".py" else _from_toml(path, stem)


def _named(stem: str, *own: str) -> str:
    """The file's path and the node's own name, once where they end alike."""
    *above, last = own
    if not above and stem.rpartition("/")[2] == last:
        return stem
    return "/".join((stem, *own))


def _from_python(layer: Library, path: Path, stem: str) -> Iterator[AnyNode]:
    declared: list[Declared] = []
    module = load_module(layer, path, {DECLARED: declared})
    # What the file's functions declare later, while nodes run, is theirs to keep.
    delattr(module, DECLARED)
    named = [(name, node) for name, value in vars(module).items() for node in _nodes_in(value)]
    held = {node.declared for _, node in named}
    for each in declared:
        if each not in held:
            raise LibraryError(
                f"{shown(path)}:{each.line}: no name holds the node {each.name!r}; give it one of "
                f"its own, or put those made in a loop in a list: nodes = [node(…) for … in …]"
            )
    found = {id(node): node for name, node in named if not name.startswith("_")}
    if not found:
        raise LibraryError(
            f"{shown(path)}: defines no node; mark a function with @node, put those made in a loop "
            f"in a list, or move the file out of nodes/"
        )
    # The whole file, as it is now: a node may lean on any line of it.
    source = path.read_text(encoding="utf-8")
    for node in found.values():
        try:
            yield replace(node, name=_named(stem, node.name), source=source)
        except DeclarationError as error:
            raise LibraryError(f"{shown(path)}: {error}") from error


def _nodes_in(value: object) -> Iterator[AnyNode]:
    """The node that a name of a module stands for, or the nodes of a list, tuple or dict."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        members = value.values() if isinstance(value, dict) else value
        yield from (member for member in members if isinstance(member, Node))


def _from_toml(path: Path, stem: str) -> Iterator[AnyNode]:
    top = read_table(path)
    made: list[tuple[Table, MadeNode]] = []
    if "prompt" in top.values:
        last = stem.rpartition("/")[2]
        made.append((top, _prompt_node(stem, top, {"name": last, "variant": ""})))
    else:
        made += _from_tables(top, stem)
    _refuse_unused(made)
    for _, each in made:
        yield each.node


def _from_tables(top: Table, stem: str) -> Iterator[tuple[Table, MadeNode]]:
    for key, value in top.values.items():
        if not isinstance(value, dict):
            top.refuse(
                key,
                "stands outside any table; move it under [shared] or a node's own table"
                + (
                    ", or give this file a top-level `prompt`, to be one node"
                    if key in KEYS
                    else ""
                ),
            )
    shared = top.own_table("shared")
    variants = {
        name: top.table("variant").own_table(name, f"variant.{name}").over(shared)
        for name in top.table("variant").values
    }
    tables = [key for key in top.values if key not in ("shared", "variant")]
    if not tables:
        raise LibraryError(f"{shown(top.file)}: holds no node; a node is a table such as [haiku]")
    for key in tables:
        table = top.own_table(key)
        chosen = table.texts("variants") or tuple(variants)
        for variant in chosen:
            if variant not in variants:
                table.refuse(
                    "variants",
                    f"{variant!r} is no variant of this file{nearest(variant, variants)} "
                    f"There are: {named(variants)}",
                )
            merged = table.over(variants[variant])
            name = _named(stem, variant, key)
            yield merged, _prompt_node(name, merged, {"name": key, "variant": variant})
        if not chosen:
            merged = table.over(shared)
            yield merged, _prompt_node(_named(stem, key), merged, {"name": key, "variant": ""})


def _prompt_node(name: str, table: Table, constants: Mapping[str, str]) -> MadeNode:
    try:
        return prompt_node(name, table, constants)
    except DeclarationError as error:
        raise LibraryError(f"{table.where()}: {error}") from error


def _refuse_unused(made: list[tuple[Table, MadeNode]]) -> None:
    """Refuses a text of its own that no template names: most often a key misspelt."""
    used = {
        (table.origins.get(word, table.name), word) for table, each in made for word in each.used
    }
    for table, each in made:
        for word in sorted(each.words):
            if (table.origins.get(word, table.name), word) not in used:
                table.refuse(
                    word,
                    f"is no key of a prompt node and no template names it{nearest(word, KEYS)} "
                    f"Keys: {named(KEYS)}",
                )
