"""`dataforge plan`: which walks lead from given facts to a goal; and the same question as PDDL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataforge.commands.options import json_option, library_option
from dataforge.errors import ContradictoryCondition, DataForgeError, UnreachableTarget, UsageError

if TYPE_CHECKING:
    from dataforge.library.root import Library
    from dataforge.plan.action import Action
    from dataforge.plan.goal import Plans
    from dataforge.plan.shape import Conditions, Shape

__all__ = ["command"]

_FACT = re.compile(r"(?P<not>!)?(?P<field>\w+)(?:\s*(?P<sign>>=|<=|=|>|<)\s*(?P<value>.+))?", re.S)
_FORMS = "write FIELD, FIELD=a|b, FIELD>=20 (of a number, or of a length) or !FIELD (absent)"


@click.command(name="plan")
@click.argument("graph", required=False)
@click.option(
    "--have", multiple=True, metavar="FACT", help="What is known at the start. Repeatable."
)
@click.option(
    "--want", multiple=True, required=True, metavar="FACT", help="What is to hold. Repeatable."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Most plans to list.",
)
@click.option(
    "--pddl",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write domain.pddl and problem.pddl there as well, for any classical planner.",
)
@library_option
@json_option
def command(
    graph: str | None,
    have: tuple[str, ...],
    want: tuple[str, ...],
    limit: int,
    pddl: Path | None,
    library: Path | None,
    as_json: bool,
) -> None:
    """Lists the walks that lead from the facts you have to those you want, shortest first.

    Draws on the nodes of GRAPH, by name or path, loops and nested graphs among them; without it, on
    all nodes of the library. A FACT is FIELD (it is there), FIELD=a|b (one of these), FIELD>=20 (a
    number, or a length), !FIELD (absent). A field given by name alone is taken to be good enough
    for every node that reads it. No model is called.

    \b
    Examples:
      dataforge plan --have passage --want answer
      dataforge plan single_turn_qa --have passage --want form=faq --want messages
      dataforge plan --have 'text>=400' --have 'text<=900' --want task=summarize --pddl planning
    """
    from dataforge.library.root import find_library
    from dataforge.plan.goal import plans

    actions = _actions(graph, find_library(library))
    given = _read("--have", have, actions, assume=True)
    wanted = _read("--want", want, actions, assume=False)
    if pddl is not None:
        _write(pddl, graph or "library", actions, given, wanted, quiet=as_json)
    try:
        found = plans(actions, given, wanted, limit)
    except UnreachableTarget as error:
        why = str(error).partition("\n")[2]
        raise DataForgeError(f"no walk leads from what you have to what you want\n{why}") from None
    if as_json:
        click.echo(json.dumps(_as_data(given, wanted, found), indent=1))
    else:
        click.echo(_as_text(have, given, found))


def _actions(graph: str | None, library: Library) -> list[Action]:
    if graph is None:
        from dataforge.library.catalogue import Catalogue

        return list(Catalogue.of(library).nodes.values())
    from dataforge.library.graphs import load_graph

    origin = load_graph(graph, library).graph.origin
    assert origin is not None
    return list(origin.exploration.needs.actions)


def _read(
    option: str, facts: Iterable[str], actions: Sequence[Action], *, assume: bool
) -> Conditions:
    """The conditions that facts of a command line are; two on one field hold both."""
    found: dict[str, Shape | None] = {}
    for fact in facts:
        field, shape = _condition(option, fact, actions, assume)
        if field in found:
            before = found[field]
            shape = before.meet(shape) if before is not None and shape is not None else None
            if shape is None:
                raise UsageError(f"{option} {fact}: cannot be, with what is said of {field} before")
        found[field] = shape
    return found


def _condition(
    option: str, fact: str, actions: Sequence[Action], assume: bool
) -> tuple[str, Shape | None]:
    from dataforge.plan.goal import assumed
    from dataforge.plan.shape import Shape

    parts = _FACT.fullmatch(fact.strip())
    if parts is None or (parts["not"] and parts["sign"]):
        raise UsageError(f"{option} {fact}: cannot be read; {_FORMS}")
    field = parts["field"]
    shapes = [
        shape
        for action in actions
        for shape in (action.preconditions.get(field), action.postconditions.get(field))
        if shape is not None
    ]
    if not shapes:
        fields = sorted({f for a in actions for f in (*a.preconditions, *a.postconditions)})
        near = get_close_matches(field, fields, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; they use {', '.join(fields)}"
        raise UsageError(f"{option} {fact}: no node reads or writes {field!r}{hint}")
    if parts["not"]:
        return field, None
    if parts["sign"] is None:
        return field, (assumed(field, actions) if assume else None) or Shape()
    try:
        if parts["sign"] == "=":
            return field, _choice(parts["value"], shapes)
        return field, _bound(parts["sign"], parts["value"], shapes)
    except (ValueError, ContradictoryCondition) as error:
        raise UsageError(f"{option} {fact}: {error}") from None


def _choice(text: str, shapes: Sequence[Shape]) -> Shape:
    """Literals, each of the value the nodes know under that text; else a text or a number."""
    from dataforge.plan.bases import below, is_number
    from dataforge.plan.shape import Shape, named

    known = {
        getattr(value, "name", str(value)): value
        for shape in shapes
        for value in shape.values or ()
    }
    numeric = any(is_number(shape.base) for shape in shapes)
    values: list[object] = []
    for part in text.split("|"):
        part = part.strip()
        if part in known:
            values.append(known[part])
        elif numeric:
            values.append(_number(part))
        elif any(below(str, shape.base) for shape in shapes):
            values.append(part)
        else:
            kinds = ", ".join(sorted({named(shape.base) for shape in shapes}))
            hint = f"; known are {', '.join(sorted(known))}" if known else ""
            raise ValueError(f"{part!r} cannot be: it is of type {kinds}{hint}")
    return Shape(values=frozenset(values))


def _bound(sign: str, text: str, shapes: Sequence[Shape]) -> Shape:
    """A bound on a number or a length, as the nodes know the field."""
    from dataforge.plan.bases import is_number, is_sized
    from dataforge.plan.shape import Shape

    number = _number(text)
    base = next((s.base for s in shapes if s.base is not object), shapes[0].base)
    if is_number(base):
        if sign[0] == ">":
            return Shape(base, low=number, low_open=sign == ">")
        return Shape(base, high=number, high_open=sign == "<")
    if not is_sized(base):
        raise ValueError(f"{base.__name__} has neither size nor length")
    if not isinstance(number, int):
        raise ValueError("a length is a whole number")
    if sign[0] == ">":
        return Shape(base, min_len=number + (sign == ">"))
    return Shape(base, max_len=number - (sign == "<"))


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not isfinite(number):
        raise ValueError(f"{text!r} is no finite number")
    return number


def _write(
    folder: Path,
    name: str,
    actions: Sequence[Action],
    have: Conditions,
    want: Conditions,
    *,
    quiet: bool,
) -> None:
    """Writes both files whole, or neither."""
    from dataforge.corpus.atomic import replace_file
    from dataforge.plan.goal import relevant
    from dataforge.plan.pddl import domain_and_problem

    domain, problem = domain_and_problem(Path(name).stem, relevant(actions, want), have, want)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--pddl {folder}: no folder can be made there ({error.strerror})"
        ) from None
    first, second = folder / "domain.pddl", folder / "problem.pddl"
    for path in (first, second):
        if path.is_dir():
            raise UsageError(f"--pddl {folder}: {path.name} there is a folder; name another")

    def write_both(path: Path) -> None:
        path.write_text(domain, encoding="utf-8")
        replace_file(second, lambda beside: beside.write_text(problem, encoding="utf-8"))

    replace_file(first, write_both)
    if not quiet:
        click.echo(f"{first} and {second}: for any planner\n")


def _roles(way: Sequence[Action]) -> Mapping[str, str]:
    return {role: kind for action in way for role, kind in action.roles.items()}


def _as_data(have: Conditions, want: Conditions, found: Plans) -> dict[str, object]:
    from dataforge.plan.shape import say

    return {
        "have": {field: say(shape) for field, shape in have.items()},
        "want": {field: say(shape) for field, shape in want.items()},
        "plans": [
            {"nodes": [action.name for action in way], "roles": sorted(_roles(way))}
            for way in found.found
        ],
        "more": found.more or found.cut,
    }


def _as_text(said: Sequence[str], have: Conditions, found: Plans) -> str:
    from dataforge.plan.goal import LOOKED_AT
    from dataforge.plan.shape import Shape, say

    lines = [
        f"assuming {field}: {say(shape)}"
        for field, shape in have.items()
        if field in said and shape not in (None, Shape())
    ]
    lines += [""] if lines else []
    width = len(str(len(found.found)))
    for number, way in enumerate(found.found, start=1):
        steps = " -> ".join(action.name for action in way) or "nothing: you have what you want"
        roles = ", ".join(sorted(_roles(way)))
        lines.append(f"{number:{width}}  {steps}" + (f"   ({roles})" if roles else ""))
    if found.more:
        lines += ["", "and more; --limit N lists them"]
    elif found.cut:
        lines += ["", f"there may be more: only the {LOOKED_AT:,} shortest walks were looked at"]
    return "\n".join(lines)
