"""`dataforge plan`: which walks lead from given facts to a goal; and the same question as PDDL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataforge.commands.options import json_option, library_option
from dataforge.errors import DataForgeError, UnreachableTarget, UsageError

if TYPE_CHECKING:
    from dataforge.library.root import Library
    from dataforge.plan.action import Action
    from dataforge.plan.goal import Assumed, Plans
    from dataforge.plan.shape import Conditions, Shape

    _Asked = Mapping[str, Sequence[tuple[str, Shape]]]

__all__ = ["command"]

_NAMED = 4
"""Most nodes named on a line."""


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
    for every node that reads it; where they disagree, for none, and what each needs is told. No
    model is called.

    \b
    Examples:
      dataforge plan --have passage --want answer
      dataforge plan single_turn_qa --have passage --want form=faq --want messages
      dataforge plan --have 'text>=400' --have 'text<=900' --want task=summarize --pddl planning
    """
    from dataforge.commands.facts import fields_by_name, read_facts
    from dataforge.library.root import find_library
    from dataforge.plan.goal import Plans, plans, relevant

    actions = _actions(graph, find_library(library))
    wanted = read_facts("--want", want, actions, {})
    taken = fields_by_name(have, relevant(actions, wanted), actions)
    given = read_facts("--have", have, actions, taken)
    if pddl is not None:
        _write(pddl, graph or "library", actions, given, wanted, quiet=as_json)
    why = ""
    try:
        found = plans(actions, given, wanted, limit)
    except UnreachableTarget as error:
        why, found = str(error), Plans((), more=False, cut=False)
    asked = _asked_besides(taken, given)
    if as_json:
        click.echo(json.dumps(_as_data(given, wanted, asked, found, why), indent=1))
    else:
        for line in (*_assumptions(taken, asked), *(() if why else _listed(found))):
            click.echo(line)
    if why:
        raise DataForgeError(why)


def _actions(graph: str | None, library: Library) -> list[Action]:
    if graph is None:
        from dataforge.library.catalogue import Catalogue

        return list(Catalogue.of(library).nodes.values())
    from dataforge.library.graphs import load_graph

    origin = load_graph(graph, library).graph.origin
    assert origin is not None
    return list(origin.exploration.needs.actions)


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


def _asked_besides(taken: Mapping[str, Assumed], have: Conditions) -> _Asked:
    """Field given by name -> its readers for whom what is known of it does not do."""
    from dataforge.plan.shape import entails

    besides = {
        field: [(name, want) for name, want in each.asking if not entails(have[field], want)]
        for field, each in taken.items()
    }
    return {field: asking for field, asking in besides.items() if asking}


def _as_data(
    have: Conditions, want: Conditions, asked: _Asked, found: Plans, why: str
) -> dict[str, object]:
    from dataforge.plan.shape import say

    return {
        "have": {field: say(shape) for field, shape in have.items()},
        "want": {field: say(shape) for field, shape in want.items()},
        "asked_besides": {
            field: [{"node": name, "needs": say(shape)} for name, shape in asking]
            for field, asking in asked.items()
        },
        "plans": [
            {"nodes": [action.name for action in way], "roles": sorted(_roles(way))}
            for way in found.found
        ],
        "more": found.more or found.cut,
        "why": why,
    }


def _assumptions(taken: Mapping[str, Assumed], asked: _Asked) -> list[str]:
    """What fields given by name are taken to be, and whom that does not do for; a blank after."""
    from dataforge.commands.facts import spelt
    from dataforge.plan.shape import Shape, say

    lines: list[str] = []
    for field, each in taken.items():
        if each.shape == Shape() and field not in asked:
            continue
        more = "; of its readers, these need more:" if field in asked else ""
        lines.append(f"assuming {field}: {say(each.shape)}{more}")
        by_shape: dict[Shape, list[str]] = {}
        for name, shape in asked.get(field, ()):
            by_shape.setdefault(shape, []).append(name)
        for shape, names in by_shape.items():
            fact = spelt(field, shape)
            fix = f"--have {fact}" if fact else "which no FACT can say"
            rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            lines.append(f"  {', '.join(names[:_NAMED])}{rest}: {say(shape)} ({fix})")
    return [*lines, ""] if lines else []


def _listed(found: Plans) -> list[str]:
    from dataforge.plan.goal import LOOKED_AT

    lines: list[str] = []
    width = len(str(len(found.found)))
    for number, way in enumerate(found.found, start=1):
        steps = " -> ".join(action.name for action in way) or "nothing: you have what you want"
        roles = ", ".join(sorted(_roles(way)))
        lines.append(f"{number:{width}}  {steps}" + (f"   ({roles})" if roles else ""))
    if found.more:
        lines += ["", "and more; --limit N lists them"]
    elif found.cut:
        lines += ["", f"there may be more: only the {LOOKED_AT:,} shortest walks were looked at"]
    return lines
