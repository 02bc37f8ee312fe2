"""The graph of section 2.1.2 of the report: its sizes, its sparse edges, and how it grows."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from dataforge import Node, Unmet
from dataforge.library.graphs import load_graph
from dataforge.library.root import FOLDERS, Library, find_library
from dataforge.models.base import Message, Reply
from dataforge.plan.graph import Graph
from dataforge.plan.struct import facts, fill

STANDARD = find_library().layers()[-1]
GRAPH = load_graph("single_turn_qa", STANDARD).graph
EDGES = {(edge.before, edge.after) for edge in GRAPH.edges()}
NODES = {node.name: node for node in GRAPH.nodes}

LIMERICK_TOML = """
role = "writer"
prompt = "{passage}\\n\\nRetell this as limericks."
writes.text = "{reply}"
preconditions.passage = { type = "str", min_len = 500, max_len = 6000 }
postconditions.text = { type = "str", min_len = 160, max_len = 4000 }
postconditions.form = "limerick"
"""
LIMERICK_PY = '''
"""A transformation in Python."""

from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from dataforge import Message, Model, Struct, node


class Passage(Struct):
    passage: Annotated[str, MinLen(500), MaxLen(6000)]


class Limerick(Struct):
    text: Annotated[str, MinLen(160), MaxLen(4000)]
    form: Literal["limerick"]


@node
async def limerick(seen: Passage, *, writer: Model) -> Limerick:
    """Retells the passage as limericks."""
    reply = await writer.chat([Message("user", seen.passage)])
    return Limerick(text=reply.text, form="limerick")
'''


def family(name: str) -> set[str]:
    """The nodes of a family that lie on some walk."""
    return {node for node in NODES if node.startswith(f"{name}/")}


def after(name: str) -> set[str]:
    """The nodes that may follow a node."""
    return {late for early, late in EDGES if early == name}


class Says:
    """A writer with one fixed reply, for the checks that only a fixed reply can reach."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def chat(
        self, messages: list[Message], *, max_tokens: int = 0, **sampling: object
    ) -> Reply:
        """The fixed reply."""
        return Reply(text=self.text, finish="stop", tokens_in=1, tokens_out=1)


def test_there_are_eight_forms_and_eight_tasks_in_two_modes_at_least() -> None:
    assert len(family("transform")) >= 8
    tasks = {name.rsplit("/", 1)[1] for name in family("ask/standalone")}
    assert len(tasks) >= 8
    assert tasks <= {name.rsplit("/", 1)[1] for name in family("ask/contextual")}


def test_every_form_leads_to_every_instruction_type() -> None:
    for form in family("transform"):
        assert after(form) == family("ask")


def test_an_instruction_leads_only_to_the_answerers_and_judges_that_fit_its_task() -> None:
    assert after("ask/contextual/summarize") == {"answered/editor+grounded"}
    assert after("ask/standalone/role_play") == {"answered/storyteller+creative"}
    assert after("ask/standalone/explain") == {
        "answered/plain+reasoned",
        "answered/teacher+reasoned",
    }
    for ask in family("ask"):
        assert 0 < len(after(ask)) < len(family("answered"))


def test_an_answer_is_tried_three_times_at_most_until_it_passes() -> None:
    for name in family("answered"):
        loop = NODES[name]
        assert getattr(loop, "at_most", None) == 3
        assert loop.postconditions["verdict"] == GRAPH.postconditions["verdict"]


@pytest.mark.parametrize(
    ("file", "text"),
    [("transform/limerick.toml", LIMERICK_TOML), ("transform/limerick.py", LIMERICK_PY)],
)
def test_a_new_file_with_a_transformation_adds_its_walks_with_no_other_edit(
    tmp_path: Path, file: str, text: str
) -> None:
    for folder in FOLDERS:
        if (STANDARD.root / folder).is_dir():
            shutil.copytree(STANDARD.root / folder, tmp_path / folder)
    new = tmp_path / "nodes" / file
    new.parent.mkdir(exist_ok=True)
    new.write_text(text, encoding="utf-8")

    grown = load_graph("single_turn_qa", Library("copy", tmp_path)).graph

    each = GRAPH.count_walks() // len(family("transform"))
    assert grown.count_walks() == GRAPH.count_walks() + each
    edges = {(edge.before, edge.after) for edge in grown.edges()}
    assert edges - EDGES == {("seed/gate", "transform/limerick")} | {
        ("transform/limerick", ask) for ask in family("ask")
    }


def ask(name: str) -> Node:  # type: ignore[type-arg]
    """An instruction node of the graph."""
    node = NODES[name]
    assert isinstance(node, Node)
    return node


TEXT = (
    "The harbour master keeps two ledgers, one for the ships that come and one for those that "
    "were expected. In a long life he has closed the second only once, in the year of the ice."
)


async def posed(name: str, request: str) -> dict[str, object]:
    """What an instruction node makes of a request that the writer wrote."""
    node = ask(name)
    writer = Says(json.dumps({"reply": request}))
    seen = fill(node.takes, {"text": TEXT, "form": "letter"})
    return facts(await node(seen, **{**node.settings, "writer": writer}))


async def test_in_contextual_mode_the_text_stands_verbatim_in_the_instruction() -> None:
    made = await posed("ask/contextual/summarize", "Summarize this text for a new clerk.")
    assert made["instruction"] == f"Summarize this text for a new clerk.\n\n{TEXT}"
    assert (made["mode"], made["task"]) == ("contextual", "summarize")


async def test_in_standalone_mode_the_text_is_never_quoted() -> None:
    made = await posed("ask/standalone/explain", "Explain how harbours keep count of their ships.")
    assert TEXT not in str(made["instruction"])
    with pytest.raises(Unmet, match="quotes text"):
        await posed(
            "ask/standalone/explain",
            "Explain why the harbour master keeps two ledgers, one for the ships that come.",
        )


async def test_an_example_given_back_is_refused() -> None:
    beyond = re.search(
        r'beyond = "(Explain [^"]+)"', (STANDARD.root / "nodes" / "ask.toml").read_text("utf-8")
    )
    assert beyond is not None
    with pytest.raises(Unmet, match="quotes an example"):
        await posed("ask/standalone/explain", beyond[1])


def test_the_graph_is_the_one_the_name_stands_for() -> None:
    assert isinstance(GRAPH, Graph)
    assert GRAPH.roles == {"writer": "model", "answerer": "model", "judge": "judge"}
