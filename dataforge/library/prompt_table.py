"""Prompt nodes as data: a table of a few lines of TOML, checked whole and made a node.

For what is one prompt and its promises. Everything is settled when the file is loaded: every key
known, every hole of every template a field of the record or a text of the table, every promised
field written by exactly one thing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le

from dataforge.library.conditions import read_conditions, read_struct
from dataforge.library.prompt import Prompt
from dataforge.library.tables import Table, named, nearest
from dataforge.library.template import Template
from dataforge.plan.node import Node
from dataforge.plan.shape import Conditions
from dataforge.plan.struct import Struct

__all__ = ["KEYS", "MadeNode", "prompt_node"]

KEYS = frozenset(
    {
        *("role", "attempts", "weight", "tags", "variants", "temperature", "top_p", "max_tokens"),
        *("system", "examples", "prompt", "append", "writes", "truncated", "writes_truncated"),
        *("openings", "unquoted", "preconditions", "postconditions"),
    }
)
"""What a prompt node's table may hold, beside texts of its own."""


_SHOWABLE = (str, int, float, bool)
_SETTING_TYPES: Mapping[str, object] = {
    "temperature": Annotated[float, Ge(0), Le(5)],
    "top_p": Annotated[float, Gt(0), Le(1)],
    "max_tokens": Annotated[int, Ge(1)],
}
"""What a graph may set them to."""


@dataclass(frozen=True, slots=True)
class MadeNode:
    """A node made from a table, and which texts of its own the table had."""

    node: Node[Struct, Struct]
    words: frozenset[str]
    """Texts of its own, which some template should name."""
    used: frozenset[str]
    """Those that a template of this node names."""


def prompt_node(name: str, table: Table, constants: Mapping[str, str]) -> MadeNode:
    """The node that a merged table describes; LibraryError naming the key that is wrong."""
    table.need("role", "prompt", "postconditions")
    own = _own_words(table, constants)
    words = {word: Template.parse(text, table.where(word)) for word, text in own.items()}
    words |= {word: Template(((text, None),)) for word, text in constants.items()}
    before = read_conditions(table.table("preconditions"), words)
    after = read_conditions(table.table("postconditions"), words)
    literals = {
        field: next(iter(shape.values))
        for field, shape in after.items()
        if shape is not None and shape.values is not None and len(shape.values) == 1
    }
    prompt = Prompt(
        where=table.where(),
        role=table.text("role"),
        makes=read_struct(table, f"{name} makes", after),
        constants=dict(constants),
        words=frozenset(own),
        system=table.text("system", ""),
        prompt=table.text("prompt"),
        examples=_examples(table),
        append=_texts(table, "append"),
        writes=_texts(table, "writes"),
        literals=literals,
        openings=_openings(table),
        unquoted=table.texts("unquoted"),
        truncated=table.choice("truncated", "refuse", "allow", "trim"),
        writes_truncated=table.text("writes_truncated", ""),
        sure=frozenset(
            name
            for name, shape in before.items()
            if shape is not None and not shape.maybe and shape.base in _SHOWABLE
        ),
    )
    settings: dict[str, object] = {
        "temperature": table.number("temperature", 0.7, high=5.0),
        "top_p": table.number("top_p", 1.0, low=1e-6, high=1.0),
        "max_tokens": table.whole("max_tokens", 512),
        **own,
    }
    if prompt.role in settings:
        table.refuse(
            "role", f"{prompt.role!r} is a setting of this node; give the role its own name"
        )
    _check_fields(table, prompt, before, after)
    _check_holes(table, prompt, before, settings)
    node = Node(
        name=name,
        takes=read_struct(table, f"{name} takes", before),
        makes=prompt.makes,
        run=prompt,
        roles={prompt.role: "model"},
        settings=settings,
        setting_types=_SETTING_TYPES,
        attempts=table.whole("attempts", 1, high=100),
        weight=table.number("weight", 1.0, low=1e-9),
        tags=frozenset(table.texts("tags")),
        source=table.canonical(),
    )
    return MadeNode(node, frozenset(own), _used(table, prompt, words))


def _own_words(table: Table, constants: Mapping[str, str]) -> dict[str, str]:
    own: dict[str, str] = {}
    fields = table.table("preconditions").values
    for key, value in table.values.items():
        if key in KEYS:
            continue
        if not isinstance(value, str):
            table.refuse(
                key,
                f"there is no such key of a prompt node{nearest(key, KEYS)} Allowed: "
                f"{named(KEYS)}; and any other key that holds a text, for templates to name",
            )
        if key in fields or key in constants or key == "reply":
            taken = "a field of the record" if key in fields else "settled by the loader"
            table.refuse(key, f"{{{key}}} is {taken} already; give this text another name")
        own[key] = value
    return own


def _texts(table: Table, key: str) -> dict[str, str]:
    inner = table.table(key)
    return {field: inner.text(field) for field in inner.values}


def _examples(table: Table) -> tuple[tuple[str, str], ...]:
    """Pairs of what is asked and answered; refused where they are anything else."""
    pairs: list[tuple[str, str]] = []
    for pair in table.entries("examples"):
        match pair:
            case [str(asked), str(answered)]:
                pairs.append((asked, answered))
            case _:
                table.refuse(
                    "examples", "needs pairs of texts: [['what is asked', 'the answer'], …]"
                )
    return tuple(pairs)


def _openings(table: Table) -> tuple[str, ...]:
    openings = table.texts("openings")
    for opening in openings:
        if not re.fullmatch(r"\w[\w ,'-]*", opening):
            table.refuse("openings", f"{opening!r} is no beginning of a sentence; words only")
    if openings and table.text("truncated", "refuse") != "refuse":
        table.refuse("truncated", "a reply with openings comes as JSON, which cannot be kept cut")
    return openings


def _check_fields(
    table: Table,
    prompt: Prompt,
    before: Conditions,
    after: Conditions,
) -> None:
    """Every promised field is written once, by something that can write it."""
    writes, truncated = table.table("writes"), prompt.writes_truncated
    for field in prompt.writes:
        if after.get(field) is None:
            writes.refuse(field, f"is not promised{nearest(field, after)} Promised: {named(after)}")
        if field in prompt.literals:
            writes.refuse(field, f"is {prompt.literals[field]!r} by its postcondition already")
    if truncated:
        if truncated not in after or getattr(after[truncated], "base", None) is not bool:
            table.refuse(
                "writes_truncated", f"needs a promised field of type bool, not {truncated!r}"
            )
        if prompt.truncated != "allow":
            table.refuse("writes_truncated", "tells nothing unless truncated = 'allow'")
    for field, shape in after.items():
        if shape is None or field in prompt.literals or field == truncated:
            continue
        place = table.table("postconditions")
        if field not in prompt.writes:
            place.refuse(
                field, f"is promised, but nothing writes it; add writes.{field} = '{{reply}}'"
            )
        if shape.base is not str:
            place.refuse(field, "a prompt writes text only; write this node in Python")
    for field in prompt.unquoted:
        if before.get(field) is None:
            table.refuse("unquoted", f"{field!r} is no precondition{nearest(field, before)}")


def _check_holes(
    table: Table, prompt: Prompt, before: Conditions, settings: Mapping[str, object]
) -> None:
    """Refuses a hole that nothing fills, and an addition that hangs on no optional field."""
    maybe = {field for field, shape in before.items() if shape is not None and shape.maybe}
    append = table.table("append")
    for field in prompt.append:
        if field not in maybe:
            append.refuse(field, f"{field!r} is no optional precondition{nearest(field, maybe)}")
    for key, hole, allowed in prompt.strays(settings):
        if hole in maybe:
            why = f"is an optional field; use it in append.{hole}."
        elif before.get(hole) is not None:
            why = "is neither text nor number; only a Python node can put it in words."
        else:
            why = f"is neither a precondition nor a text of this table{nearest(hole, allowed)}"
        table.refuse(key, f"{{{hole}}} {why} Allowed here: {named(allowed)}")


def _used(table: Table, prompt: Prompt, words: Mapping[str, Template]) -> frozenset[str]:
    """The words that templates and conditions name, by way of other words too."""
    conditions = _strings(table.values.get("postconditions"), table.values.get("preconditions"))
    texts = [*(text for _, text, _ in prompt.templates()), *conditions]
    waiting = [name for text in texts for name in Template.parse(text, table.where()).names]
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in words and name not in used:
            used.add(name)
            waiting += words[name].names
    return frozenset(used)


def _strings(*values: object) -> list[str]:
    found: list[str] = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            found += _strings(*value.values())
        elif isinstance(value, list):
            found += _strings(*value)
    return found
