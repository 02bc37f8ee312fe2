"""Nodes in every way they can be written; checkers read this file, a test runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, MinLen

from dataforge import Absent, Case, Graph, Judge, Message, Model, Node, Rubric, Struct, gate, node
from dataforge.plan.shape import Shape

Form = Literal["haiku", "ode"]
FORMS: Sequence[Form] = ("haiku", "ode")


class Passage(Struct):
    passage: Annotated[str, MinLen(20)]
    text: Absent = None


class Text(Struct):
    text: str
    form: Form


class Counted(Struct):
    words: Annotated[int, Ge(0)]


class Judged(Struct):
    verdict: Literal["pass", "fail", "undecided"]


@node
async def shout(seen: Passage) -> Text:
    """A function, as it stands."""
    return Text(text=seen.passage.upper(), form="ode")


@node(attempts=3, tags=["verse"])
async def sing(seen: Passage, *, writer: Model, tone: Literal["plain", "warm"] = "plain") -> Text:
    """A function with a role and a setting."""
    reply = await writer.chat([Message("user", f"{tone}: {seen.passage}")])
    return Text(text=reply.text, form="ode")


@node
def count(seen: Text, *, least: int = 1) -> Counted:
    """A sync function; it runs in a thread."""
    return Counted(words=max(least, len(seen.text.split())))


@node(judges="text")
async def fair(seen: Text, *, judge: Judge) -> Judged:
    """A judge."""
    rubric = Rubric(name="fair", criteria={"fair": "no side"}, system="Judge.", prompt="{answer}")
    verdict = await judge.judge(Case(instruction="", answer=seen.text), rubric)
    assert verdict.status != "error"
    return Judged(verdict=verdict.status)


@dataclass(frozen=True)
class Retell:
    """An object with a state, a template and a form."""

    form: Form
    template: str = "Retell this as {form}: {passage}"

    async def __call__(self, seen: Passage, *, writer: Model) -> Text:
        asked = self.template.format(form=self.form, passage=seen.passage)
        reply = await writer.chat([Message("user", asked)])
        return Text(text=reply.text, form=self.form)


retold = [node(Retell(form), name=f"retell/{form}", promises={"form": form}) for form in FORMS]


def counting(form: Form) -> Node[Text, Counted]:
    """A node made by a function, one of a family."""

    @node(name=f"count/{form}", needs={"form": form})
    def counted(seen: Text) -> Counted:
        return Counted(words=len(seen.text.split()))

    return counted


counts = {form: counting(form) for form in FORMS}

start = gate("start", {"passage": Shape(str, min_len=20)})
graph = Graph.build("verse", [start, *retold, count], "start", "count")


async def used() -> int:
    """Nodes are called as they were written."""
    told: Text = await shout(Passage(passage="some twenty letters and more"))
    counted: Counted = await count(told, least=2)
    return counted.words
