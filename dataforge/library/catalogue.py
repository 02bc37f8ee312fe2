"""All nodes of a library's layers under their names, and what a name, pattern or tag picks.

Rubrics are among them, as judge nodes. Reading everything to use a part costs milliseconds and
means that a broken file is found by the first command and not by the first graph that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dataforge.errors import DuplicateName
from dataforge.library.judges import layer_judges, rubric_at
from dataforge.library.nodes import AnyNode, declared_at, layer_nodes
from dataforge.library.root import Library
from dataforge.library.tables import named, nearest

__all__ = ["Catalogue", "is_pattern", "matches"]


def is_pattern(entry: str) -> bool:
    """Whether an entry picks by pattern or tag and not one node by its name."""
    return entry.startswith("tag:") or any(sign in entry for sign in "*?[")


def matches(pattern: str, name: str, tags: frozenset[str] = frozenset()) -> bool:
    """Whether a pattern, `tag:NAME` or plain name picks a node; `*` crosses `/`."""
    kind, _, tag = pattern.partition(":")
    return tag in tags if kind == "tag" and tag else fnmatchcase(name, pattern)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Nodes by name."""

    nodes: Mapping[str, AnyNode]
    layer_of: Mapping[str, str]
    """Name -> name of the library it comes from."""

    @classmethod
    def of(cls, library: Library) -> Catalogue:
        """All nodes and rubrics of all layers, the uppermost winning."""
        nodes: dict[str, AnyNode] = {}
        layer_of: dict[str, str] = {}
        for layer in reversed(library.layers()):
            own, judges = layer_nodes(layer), layer_judges(layer)
            for name in sorted(own.keys() & judges.keys()):
                raise DuplicateName(
                    f"a node and a rubric of {layer.name} are both named {name!r}: the node in "
                    f"{declared_at(layer, name)}, the rubric in {rubric_at(layer, name)}; rename "
                    "one of them"
                )
            nodes |= own | judges
            layer_of |= dict.fromkeys((*own, *judges), layer.name)
        return cls(dict(sorted(nodes.items())), layer_of)

    def picked(self, entry: str) -> tuple[str, ...]:
        """Names an entry picks, sorted; `LIBRARY:ENTRY` keeps to one library. Empty for none."""
        layer, colon, rest = entry.partition(":")
        if colon and layer in self.layer_of.values():
            return tuple(name for name in self.picked(rest) if self.layer_of[name] == layer)
        return tuple(name for name, node in self.nodes.items() if matches(entry, name, node.tags))

    def advice(self, entry: str) -> str:
        """What to write in place of an entry that picks nothing."""
        kind, colon, rest = entry.partition(":")
        if kind == "tag" and colon:
            tags = {tag for node in self.nodes.values() for tag in node.tags}
            return f"no node has the tag {rest!r}{nearest(rest, tags)} Tags: {named(tags)}"
        families = {f"{name.rpartition('/')[0]}/*" for name in self.nodes if "/" in name}
        alone = {name for name in self.nodes if "/" not in name}
        if is_pattern(entry):
            return f"no node matches {entry!r}{nearest(entry, families)} Try: {named(families)}"
        return (
            f"there is no node {entry!r}{nearest(entry, self.nodes)} Nodes: "
            f"{named(families | alone)}; each is listed by `dataforge check`"
        )
