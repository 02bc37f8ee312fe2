"""Judges of a library: rubrics as data, and judges written as code.

A rubric, a table of `judges/NAME.toml`, becomes a judge node `judge/NAME/TABLE`: what it is put to
(preconditions) decides which answers it fits, and whichever model or code is bound to its role
judges by it. A judge in code, `judges/NAME.py`, is bound to a role by the spec `code:NAME`. Whether
a judge is any good is not known here: see `evals/agreement.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal, cast

from annotated_types import Ge, Le

from dataforge.errors import DeclarationError, DuplicateName, LibraryError, Unmet
from dataforge.library.conditions import read_conditions, read_struct
from dataforge.library.modules import load_module
from dataforge.library.nodes import AnyNode, table_header
from dataforge.library.root import Library
from dataforge.library.tables import Table, line_at, named, nearest, read_table, shown
from dataforge.library.template import Template
from dataforge.models.judge import Case, Judge, Rubric
from dataforge.plan.annotation import read_shape
from dataforge.plan.node import Node
from dataforge.plan.shape import Shape
from dataforge.plan.struct import Struct, facts

__all__ = ["CodeJudge", "layer_judges", "load_code_judge", "load_judges", "rubric_at"]

_KEYS = (
    *("role", "judges", "attempts", "weight", "tags", "system", "prompt", "criteria"),
    *("pass_mark", "floor", "scale", "max_tokens", "preconditions"),
)
_MARK = Annotated[float, Ge(0), Le(1)]
_HOLES = ("instruction", "answer", "criteria", "scale")


@dataclass(frozen=True, slots=True)
class CodeJudge:
    """A judge in code, opened."""

    judge: Judge
    weights: str
    """Identity of the weights it judges with, as of a model's."""
    digest: str
    """Hash of its file."""


def load_code_judge(name: str, library: Library) -> CodeJudge:
    """Opens `judges/NAME.py`; LibraryError when there is none or it is no judge."""
    path = library.find("judges", name, ".py")
    layer = next(layer for layer in library.layers() if path.is_relative_to(layer.root))
    module = load_module(layer, path)
    opens, weights = getattr(module, "open_judge", None), getattr(module, "WEIGHTS", None)
    if not callable(opens) or not isinstance(weights, str):
        raise LibraryError(
            f"{shown(path)}: is no judge; it needs `def open_judge() -> Judge` and WEIGHTS, a text "
            f"that names what it judges with"
        )
    digest = blake2b(path.read_bytes(), digest_size=16).hexdigest()
    return CodeJudge(cast("Judge", opens()), weights, digest)


def load_judges(library: Library) -> dict[str, AnyNode]:
    """Name -> judge node over all layers, the uppermost winning; sorted by name."""
    nodes: dict[str, AnyNode] = {}
    for layer in reversed(library.layers()):
        nodes |= layer_judges(layer)
    return dict(sorted(nodes.items()))


def layer_judges(layer: Library) -> dict[str, AnyNode]:
    """Name -> judge node of one layer alone."""
    nodes: dict[str, AnyNode] = {}
    for path in layer.files("judges", ".toml"):
        stem = path.relative_to(layer.root / "judges").with_suffix("").as_posix()
        for node in _rubric_nodes(path, f"judge/{stem}"):
            if node.name in nodes:
                raise DuplicateName(
                    f"two rubrics are named {node.name!r}: one in {rubric_at(layer, node.name)} "
                    f"and one in {_place(path, node.name)}; rename one of them"
                )
            nodes[node.name] = node
    return nodes


def rubric_at(layer: Library, name: str) -> str:
    """File and line of a rubric of one layer, the first of that name."""
    for path in layer.files("judges", ".toml"):
        stem = path.relative_to(layer.root / "judges").with_suffix("").as_posix()
        if any(f"judge/{stem}/{key}" == name for key in read_table(path).values):
            return _place(path, name)
    raise KeyError(name)


def _place(path: Path, name: str) -> str:
    return line_at(path, table_header(name.rpartition("/")[2]))


def _rubric_nodes(path: Path, stem: str) -> list[AnyNode]:
    top = read_table(path)
    for key, value in top.values.items():
        if not isinstance(value, dict):
            top.refuse(key, "stands outside any table; move it under [shared] or a rubric's table")
    shared = top.own_table("shared")
    names = [key for key in top.values if key != "shared"]
    if not names:
        raise LibraryError(
            f"{shown(path)}: holds no rubric; a rubric is a table such as [grounded]"
        )
    nodes = []
    for key in names:
        table = top.own_table(key).over(shared)
        try:
            nodes.append(_rubric_node(f"{stem}/{key}", table))
        except DeclarationError as error:
            raise LibraryError(f"{table.where()}: {error}") from error
    return nodes


def _rubric_node(name: str, table: Table) -> AnyNode:
    table.known(*_KEYS, of="a rubric")
    table.need("judges", "prompt", "criteria")
    role, judged = table.text("role", "judge"), table.text("judges")
    rubric = _rubric(name, table)
    before: dict[str, Shape | None] = {
        "instruction": read_shape(str, f"{name} instruction"),
        judged: read_shape(str, f"{name} {judged}"),
        "truncated": read_shape(bool | None, f"{name} truncated"),
        **read_conditions(table.table("preconditions"), {}),
    }
    return Node(
        name=name,
        takes=read_struct(table, f"{name} takes", before),
        makes=Judged,
        run=_Judging(rubric, role, judged),
        roles={role: "judge"},
        settings={"pass_mark": rubric.pass_mark, "floor": rubric.floor},
        setting_types={"pass_mark": _MARK, "floor": _MARK},
        attempts=table.whole("attempts", 2, high=100),
        weight=table.number("weight", 1.0, low=1e-9),
        tags=frozenset(table.texts("tags")),
        judges=judged,
        source=table.canonical(),
    )


def _rubric(name: str, table: Table) -> Rubric:
    for key in ("system", "prompt"):
        for hole in sorted(Template.parse(table.text(key, ""), table.where(key)).names):
            if hole not in _HOLES:
                table.refuse(
                    key,
                    f"{{{hole}}} is nothing a rubric knows{nearest(hole, _HOLES)} It knows: "
                    f"{named(_HOLES)}",
                )
    criteria = table.table("criteria")
    if not criteria.values:
        table.refuse("criteria", "needs at least one criterion, such as relevance = '…'")
    return Rubric(
        name=name.removeprefix("judge/"),
        criteria={key: criteria.text(key) for key in criteria.values},
        system=table.text("system", ""),
        prompt=table.text("prompt"),
        pass_mark=table.number("pass_mark", 0.6, high=1.0),
        floor=table.number("floor", 0.4, high=1.0),
        scale=table.whole("scale", 5, low=2, high=100),
        max_tokens=table.whole("max_tokens", 800),
    )


class Judged(Struct):
    """What a judge node promises."""

    verdict: Literal["pass", "fail", "undecided"]
    score: Annotated[float, Ge(0), Le(1)] | None = None
    feedback: str


@dataclass(frozen=True, slots=True)
class _Judging:
    """What a judge node runs."""

    rubric: Rubric
    role: str
    judged: str
    """The field that holds what is judged."""

    async def __call__(self, seen: Struct, **given: object) -> Judged:
        fields = facts(seen)
        case = Case(
            instruction=str(fields["instruction"]),
            answer=str(fields[self.judged]),
            truncated=bool(fields.get("truncated")),
        )
        rubric = replace(
            self.rubric,
            pass_mark=cast("float", given["pass_mark"]),
            floor=cast("float", given["floor"]),
        )
        verdict = await cast("Judge", given[self.role]).judge(case, rubric)
        if verdict.status == "error":
            raise Unmet("the judge failed", verdict.feedback)
        return Judged(verdict=verdict.status, score=verdict.score, feedback=verdict.feedback)
