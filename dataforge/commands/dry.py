"""`dataforge run --dry`: the prompts of the first walks; no model is opened, nothing written."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from dataforge.errors import UsageError

if TYPE_CHECKING:
    from dataforge.commands.ordering import Request
    from dataforge.run.dry import Asked, DryWalk

__all__ = ["show_dry"]

_WALKS = 3
"""Walks shown where nothing else is said."""
_WIDTH = 100


def show_dry(request: Request) -> None:
    """Prints what the first walks of a run would ask, over stand-ins for replies.

    Roles may be left open, as no model is opened. Raises what a library or seeds that cannot be
    read raise.
    """
    from dataforge.commands.ordering import seeds_of
    from dataforge.library.graphs import load_graph
    from dataforge.library.root import find_library
    from dataforge.run.dry import dry_walks

    library = find_library(request.library)
    loaded = load_graph(request.graph, library)
    seeds = seeds_of(request, library, partial(click.echo, err=True)).seeds
    if not len(seeds):
        raise UsageError(f"{seeds.path}: no seed to walk from")
    models = request.models
    specs = {**loaded.roles, **models}
    coded = frozenset(role for role, spec in specs.items() if spec.startswith("code:"))
    told = asyncio.run(
        dry_walks(
            loaded.graph,
            seeds,
            request.walks or _WALKS,
            run_seed=request.run_seed,
            rule=request.policy or loaded.policy,
            coded=coded,
        )
    )
    for each in told:
        click.echo("\n".join(_lines(each, specs)))
        click.echo("")
    calls = sum(not asked.again for each in told for asked in each.asked)
    click.echo(
        f"{len(told):,} walks would ask {calls:,} calls, or more where one is tried again. "
        "No model was opened, nothing was written; angle quotes hold what only a reply can give"
    )


def _lines(told: DryWalk, specs: Mapping[str, str]) -> Iterator[str]:
    yield f"walk     {told.id}: dry"
    yield f"seed     {told.seed_id}, walk {told.walk} of it"
    yield from _wrapped("path", " -> ".join(told.path))
    if told.ended:
        yield from _wrapped("ends", told.ended)
    for note in told.notes:
        yield from _wrapped("note", note)
    for number, asked in enumerate(told.asked, start=1):
        yield ""
        yield from _call(number, asked, specs)
    for turn in told.sample:
        yield ""
        yield f"sample: {turn.role}"
        yield from _text(turn.content)


def _call(number: int, asked: Asked, specs: Mapping[str, str]) -> Iterator[str]:
    params = asked.params
    yield f"{number}. {asked.node}" + (", in the loop's second round" if asked.again else "")
    yield f"  {asked.role} = {specs.get(asked.role, '(to be bound)')}"
    form = ", JSON by a schema" if params.schema is not None else ""
    yield (
        f"  temperature {params.temperature:g}, top_p {params.top_p:g}, "
        f"at most {params.max_tokens} tokens{form}"
    )
    for message in asked.messages:
        yield f"  {message.role}:"
        yield from _text(message.content)


def _text(text: str) -> Iterator[str]:
    """A text as it is sent, each line indented."""
    for line in text.split("\n"):
        yield f"    {line}".rstrip() if not line.strip() else f"    {line}"


def _wrapped(label: str, text: str) -> Iterator[str]:
    if text:
        yield textwrap.fill(text, _WIDTH, initial_indent=f"{label:8} ", subsequent_indent=" " * 9)
