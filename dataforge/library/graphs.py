"""Graphs of a library: a TOML file that says which nodes, from where, to where, with which roles.

Edges are never written: the plan works them out. A node is named outright, by pattern
(`transform/*`, where `*` crosses `/`) or by tag (`tag:creative`); one named outright must lie on
some walk, one that a pattern matches may lie idle, which is a notice. A pattern matches over all
layers of the library; `mine:transform/*` keeps to the library of that name. `graph:NAME` puts
another graph in, as one node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from dataforge.errors import (
    ContradictoryCondition,
    DataForgeError,
    DeclarationError,
    DuplicateName,
    GraphError,
    LibraryError,
)
from dataforge.library.catalogue import Catalogue, is_pattern, matches
from dataforge.library.conditions import read_conditions
from dataforge.library.nodes import AnyNode
from dataforge.library.prompt import Prompt
from dataforge.library.root import Library
from dataforge.library.tables import Table, line_at, named, nearest, read_table, shown
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import chain, loop
from dataforge.plan.node import gate
from dataforge.run.policy import POLICIES, Policy

__all__ = ["LoadedGraph", "graph_names", "load_graph"]

_KEYS = (
    "description",
    "source",
    "target",
    "nodes",
    "loop",
    "settings",
    "weights",
    "roles",
    "policy",
)
_ENDS = ("source", "target")
_LOOP_KEYS = ("name", "body", "until", "at_most", "critique")


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """A graph and what its file says beside it."""

    graph: Graph
    roles: Mapping[str, str]
    """Role -> the model spec it is bound to unless a run says otherwise."""
    description: str
    path: Path
    policy: Policy = "uniform"
    """By which rule a run chooses walks unless it says otherwise."""
    remarks: tuple[str, ...] = ()
    """What was found while it was read and is likely not meant, in sentences."""
    inside: tuple[LoadedGraph, ...] = ()
    """The graphs it holds."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What is likely not meant, in sentences: a node in no loop, a node on no walk.

        To say why takes longer than to build the graph, so it is worked out when asked for.
        """
        own = (why.strip() for why in self.graph.why_idle().values())
        inner = (
            f"in {each.graph.name}: {notice}" for each in self.inside for notice in each.notices
        )
        return (*self.remarks, *inner, *own)

    @property
    def noticed(self) -> int:
        """How many notices there are."""
        inner = sum(each.noticed for each in self.inside)
        return len(self.remarks) + len(self.graph.idle) + inner


def graph_names(library: Library) -> list[str]:
    """All graphs of all layers, sorted."""
    return sorted(
        {
            path.relative_to(layer.root / "graphs").with_suffix("").as_posix()
            for layer in library.layers()
            for path in layer.files("graphs", ".toml")
        }
    )


def load_graph(name_or_path: str, library: Library) -> LoadedGraph:
    """The graph of that name, or of the file at that path, built and ready to walk.

    Raises LibraryError for a file that cannot be read as a graph and GraphError for a graph that
    cannot be built.
    """
    return _Loader(library, Catalogue.of(library)).load(_graph_path(name_or_path, library), ())


def _graph_path(name_or_path: str, library: Library) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml" and path.is_file():
        return path
    return library.find("graphs", name_or_path.removeprefix("graphs/"), ".toml")


@dataclass(frozen=True, slots=True)
class _Loader:
    """Loads a graph and those inside it, over nodes that are read once."""

    library: Library
    catalogue: Catalogue

    def load(self, path: Path, above: tuple[Path, ...]) -> LoadedGraph:
        """The graph in `path`, which stands inside those `above`."""
        if path in above:
            circle = " -> ".join(each.stem for each in (*above[above.index(path) :], path))
            raise GraphError(f"{shown(path)}: a graph cannot hold itself: {circle}")
        table = read_table(path)
        table.known(*_KEYS, of="a graph")
        table.need("source", "target", "nodes")
        return _Draft(self, table, (*above, path)).loaded()


class _Draft:
    """One graph file on its way to a graph."""

    def __init__(self, loader: _Loader, table: Table, trail: tuple[Path, ...]) -> None:
        self.loader = loader
        self.catalogue = loader.catalogue
        self.table = table
        self.trail = trail
        self.path = trail[-1]
        self.settings = table.table("settings")
        self.weights = table.table("weights")
        self.configured: dict[str, AnyNode] = {}
        self.actions: dict[str, Action] = {}
        self.entries: dict[str, str] = {}
        """Name of an action -> what it was put in by, as the file writes it."""
        self.named: set[str] = set()
        self.roles: dict[str, str] = {}
        self.remarks: list[str] = []
        self.inside: list[LoadedGraph] = []

    def loaded(self) -> LoadedGraph:
        """The graph, with its complaints naming the file."""
        ends = {end: self._end(end) for end in ("source", "target")}
        for end, action in ends.items():
            self._put(action, end)
        for loop_table in self.table.tables("loop"):
            self._add_loop(loop_table)
        taken = {*self.actions, *self.configured}
        for entry in self.table.texts("nodes"):
            self._add(entry, taken)
        self._weigh()
        self._refuse_idle_settings()
        try:
            graph = Graph.build(
                self._name(),
                list(self.actions.values()),
                ends["source"].name,
                ends["target"].name,
                named=self.named,
            )
        except (GraphError, DeclarationError) as error:
            raise type(error)(f"{shown(self.path)}: {error}") from error
        return LoadedGraph(
            graph=graph,
            roles=self._roles(graph),
            description=self.table.text("description", ""),
            path=self.path,
            policy=self._policy(),
            remarks=tuple(self.remarks),
            inside=tuple(self.inside),
        )

    def _name(self) -> str:
        for layer in self.loader.library.layers():
            top = layer.root / "graphs"
            if self.path.resolve().is_relative_to(top.resolve()):
                relative = self.path.resolve().relative_to(top.resolve())
                return relative.with_suffix("").as_posix()
        return self.path.stem

    def _end(self, key: str) -> Action:
        if isinstance(self.table.values[key], dict):
            return gate(key, read_conditions(self.table.table(key), {}))
        name = self.table.text(key)
        if is_pattern(name):
            self.table.refuse(key, f"no single node is meant by {name!r}; write the name of one")
        picked = self.catalogue.picked(name)
        if not picked:
            self.table.refuse(key, self.catalogue.advice(name))
        return self._set(picked[0])

    def _set(self, name: str) -> AnyNode:
        """The node with the graph's settings, in the file's order."""
        if name in self.configured:
            return self.configured[name]
        node = self.catalogue.nodes[name]
        for pattern in self.settings.values:
            if not matches(pattern, name, node.tags):
                continue
            values = self.settings.table(pattern)
            wanted = {
                key: value
                for key, value in values.values.items()
                # By pattern, a setting goes to those nodes that have it.
                if key in node.settings or not is_pattern(pattern)
            }
            try:
                node = node.with_settings(**wanted)
                _refuse_strays(node)
            except DataForgeError as error:
                raise type(error)(f"{values.where()}: {error}") from error
        self.configured[name] = node
        return node

    def _add(self, entry: str, taken: set[str]) -> None:
        if entry.startswith("graph:"):
            self._add_graph(entry)
            return
        picked = self.catalogue.picked(entry)
        if not picked:
            advice = self.catalogue.advice(entry)
            if entry in graph_names(self.loader.library):
                advice = f"{entry!r} is no node but a graph; write 'graph:{entry}'"
            self.table.refuse("nodes", advice)
        for name in picked:
            # What a pattern matches and the graph already uses elsewhere is not meant twice.
            if not (is_pattern(entry) and name in taken):
                self._put(self._set(name), entry)
            elif name not in self.configured:
                self.remarks.append(
                    f"{name}, which {entry!r} matches, is left out: the name is taken here by "
                    f"{self.entries[name]!r}"
                )
        if not is_pattern(entry):
            self.named.add(picked[0])

    def _put(self, action: Action, entry: str) -> None:
        """Puts an action in; DuplicateName where another of its name is in the graph."""
        name, before = action.name, self.entries.get(action.name)
        if before is not None:
            same = self.actions[name] is action
            twice = same or {entry[:6], before[:6]} == {"graph:"}
            if not same or not (is_pattern(entry) or is_pattern(before) or before in _ENDS):
                advice = "leave one out" if twice else "give one of the two another name"
                place = line_at(self.path, _quoted(entry), 2 if entry == before else 1)
                raise DuplicateName(
                    f"{place}: {entry!r} and {before!r} both put {name!r} into this graph; {advice}"
                )
        if before is None or is_pattern(before):
            self.entries[name] = entry
        self.actions[name] = action

    def _add_graph(self, entry: str) -> None:
        path = self.loader.library.find("graphs", entry.removeprefix("graph:"), ".toml")
        inner = self.loader.load(path, self.trail)
        self._put(inner.graph, entry)
        self.named.add(inner.graph.name)
        self.roles |= inner.roles
        self.inside.append(inner)

    def _add_loop(self, entry: Table) -> None:
        """Makes every chain of the body's steps that fits together a loop of its own."""
        entry.known(*_LOOP_KEYS, of="a loop")
        entry.need("name", "body", "until", "at_most")
        name, parts = entry.text("name"), entry.texts("body")
        pools = [self._pool(part, entry) for part in parts]
        until = read_conditions(entry.table("until"), {})
        at_most, critique = entry.whole("at_most", 1, high=100), entry.text("critique", "") or None
        bodies = [steps for steps in product(*pools) if chain(steps) is not None]
        short = ["+".join(step.name.rpartition("/")[2] for step in steps) for steps in bodies]
        # Where no chain fits, the first of them is built all the same, to say why it does not.
        for steps in bodies or [tuple(pool[0] for pool in pools)]:
            last = "+".join(step.name.rpartition("/")[2] for step in steps)
            whole = "+".join(step.name for step in steps)
            full = f"{name}/{last if short.count(last) == 1 else whole}"
            try:
                made = loop(full, steps, until=until, at_most=at_most, critique=critique)
            except (DeclarationError, ContradictoryCondition) as error:
                entry.refuse("body" if not bodies else "", str(error))
            self._put(made, f"loop {name}")
            if not any(map(is_pattern, parts)):
                self.named.add(made.name)
        used = {step.name for steps in bodies for step in steps}
        for step in (step for pool in pools for step in pool if step.name not in used):
            self.remarks.append(f"{step.name} fits into no chain of the loop {name}")

    def _pool(self, part: str, entry: Table) -> list[AnyNode]:
        """The nodes that may be one step of a loop."""
        picked = self.catalogue.picked(part)
        if not picked:
            entry.refuse("body", self.catalogue.advice(part))
        return [self._set(name) for name in picked]

    def _weigh(self) -> None:
        for pattern in self.weights.values:
            weight = self.weights.number(pattern, 1.0, low=1e-9)
            hit = [
                name
                for name, each in self.actions.items()
                if matches(pattern, name, each.tags)
                or (isinstance(each, Graph) and pattern == f"graph:{name}")
            ]
            if not hit:
                self.weights.refuse(
                    pattern,
                    f"picks no node of this graph{nearest(pattern, self.actions)} It has: "
                    f"{named(self.actions)}",
                )
            for name in hit:
                self.actions[name] = self.actions[name].weighted(weight)

    def _refuse_idle_settings(self) -> None:
        """Refuses a setting that no node of the graph took."""
        for pattern in self.settings.values:
            values = self.settings.table(pattern)
            nodes = [
                node for name, node in self.configured.items() if matches(pattern, name, node.tags)
            ]
            if not nodes:
                self.settings.refuse(
                    pattern, f"picks no node of this graph{nearest(pattern, self.configured)}"
                )
            has = {setting for node in nodes for setting in node.settings}
            for key in values.values:
                if key not in has:
                    values.refuse(
                        key,
                        f"no node that {pattern!r} picks has this setting{nearest(key, has)} "
                        f"They have: {named(has)}",
                    )

    def _policy(self) -> Policy:
        said = self.table.text("policy", "uniform")
        chosen = next((each for each in POLICIES if each == said), None)
        if chosen is None:
            known = f"{nearest(said, POLICIES)} Known: {named(POLICIES)}"
            self.table.refuse("policy", f"{said!r} is no walk policy{known}")
        return chosen

    def _roles(self, graph: Graph) -> dict[str, str]:
        """Default bindings, this file's before those of the graphs inside."""
        table = self.table.table("roles")
        for role in table.values:
            if role not in graph.roles:
                table.refuse(
                    role,
                    f"no node of this graph has this role{nearest(role, graph.roles)} Roles: "
                    f"{named(graph.roles)}",
                )
        bound = {**self.roles, **{role: table.text(role) for role in table.values}}
        return {role: spec for role, spec in bound.items() if role in graph.roles}


def _quoted(entry: str) -> str:
    """A regular expression for an entry as a file writes it."""
    if entry in _ENDS:
        return rf"^\s*{entry}\b"
    loop = entry.removeprefix("loop ")
    return rf"""(?<![^\s\[,=])["']{re.escape(loop)}["']"""


def _refuse_strays(node: AnyNode) -> None:
    """Refuses settings under which a prompt names something that nothing fills."""
    if not isinstance(node.run, Prompt):
        return
    for key, hole, allowed in node.run.strays(node.settings):
        raise LibraryError(
            f"so set, {key} of {node.name} names {{{hole}}}, which nothing fills"
            f"{nearest(hole, allowed)} Allowed there: {named(allowed)}"
        )
