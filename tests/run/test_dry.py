"""What a run would ask is what it asks, as far as no reply is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le, MinLen
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dataforge.errors import DeclarationError, Unmet
from dataforge.models.base import Message, Model
from dataforge.plan.annotation import read_shape
from dataforge.plan.graph import Graph
from dataforge.plan.node import gate, node
from dataforge.plan.shape import Shape
from dataforge.plan.struct import Struct
from dataforge.run.dry import DryWalk, dry_walks
from dataforge.run.finish import ended_walks
from dataforge.run.journal import ChatEntry
from dataforge.run.manifest import load_manifest
from dataforge.run.policy import POLICIES, Policy
from dataforge.run.seed import Seed, SeedStore
from dataforge.run.stand_in import by_schema, stand_in
from dataforge.run.story import stories
from tests.run.scene import GRAPH, Passage, order, run, seeds

TEXT = Shape(str)
END = gate("end", {"messages": Shape(list)})


async def dry(
    graph: Graph,
    count: int = 1,
    own: Sequence[Seed] = (),
    coded: frozenset[str] = frozenset({"judge"}),
    policy: Policy = "uniform",
) -> list[DryWalk]:
    found = SeedStore.of("seeds.jsonl", list(own) or seeds(max(count, 4)))
    return await dry_walks(graph, found, count, run_seed=0, rule=policy, coded=coded)


@pytest.mark.parametrize("policy", POLICIES)
async def test_walks_and_prompts_that_hang_on_the_seed_alone_are_those_of_the_run(
    tmp_path: Path, policy: Policy
) -> None:
    asked_for = replace(order(12), walks=30, policy=policy)
    await run(asked_for, tmp_path / "run")
    told = await dry(GRAPH, 30, seeds(12), policy=policy)
    ended = ended_walks(tmp_path / "run", load_manifest(tmp_path / "run").fingerprint)
    assert {each.id for each in told} == {name for name, _ in ended.items()}
    made = {story.walk.id: story for story in stories(tmp_path / "run", [each.id for each in told])}
    compared = 0
    for each in told:
        sent = {
            (entry.node, entry.messages)
            for entry in made[each.id].calls.values()
            if isinstance(entry, ChatEntry)
        }
        for asked in each.asked:
            if not any("\u2039" in message.content for message in asked.messages):
                assert (asked.node, asked.messages) in sent
                compared += 1
        ran = dict.fromkeys(made[each.id].walk.path)
        assert list(dict.fromkeys(each.path))[: len(ran)] == list(ran)
    assert compared == 30


async def test_every_prompt_of_a_walk_is_told_with_stand_ins_for_replies() -> None:
    (told,) = await dry(GRAPH)
    assert [(each.node, each.again) for each in told.asked] == [
        (told.path[1], False),
        ("ask/summary", False),
        ("answer/plain", False),
        ("answer/plain", True),
    ]
    words = [each.messages[-1].content for each in told.asked]
    assert words[1:] == [
        "Ask about: \u2039text\u203a",
        "\u2039instruction\u203a \u2039text\u203a",
        "\u2039instruction\u203a \u2039text\u203a (\u2039feedback\u203a)",
    ]
    assert told.ended == ""
    assert [turn.content for turn in told.sample] == [
        "\u2039instruction\u203a",
        "\u2039answer\u203a",
    ]


async def test_a_model_that_judges_is_asked_too_and_code_is_not() -> None:
    (told,) = await dry(GRAPH, coded=frozenset())
    (judged,) = [each for each in told.asked if each.role == "judge"]
    assert judged.messages[0].content.startswith(
        "Judge \u2039answer\u203a to \u2039instruction\u203a by"
    )
    assert judged.params.schema is not None
    (told,) = await dry(GRAPH)
    assert "judge/grounded" in told.path
    assert not any(each.role == "judge" for each in told.asked)


async def test_a_seed_that_a_run_turns_away_is_turned_away_here() -> None:
    twins = [Seed("a", "one passage, long enough"), Seed("b", "One passage,  long enough")]
    short = Seed("c", "short")
    told = {each.seed_id: each for each in await dry(GRAPH, 3, [*twins, short])}
    assert told["b"].ended == "seeds: same passage as seed a"
    assert told["c"].ended.startswith("seed/gate: passage is not str of at least 20 characters")
    assert (told["a"].ended, bool(told["a"].asked)) == ("", True)


class Shown(Struct):
    shown: str


class Made(Struct):
    messages: list[dict[str, str]]


def over(*nodes: object) -> Graph:
    """A graph of these nodes in a row, from a passage to messages."""
    start = gate("start", {"passage": Shape(str, min_len=20)})
    return Graph.build("row", [start, *nodes, END], "start", "end")  # type: ignore[list-item]


@node
async def finish(seen: Shown, *, writer: Model) -> Made:
    said = (await writer.chat([Message("user", f"End {seen.shown}")])).text
    return Made(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": said}])


async def test_what_a_node_makes_of_the_seed_without_a_model_is_real() -> None:
    @node
    def count(seen: Passage) -> Shown:
        return Shown(shown=f"{len(seen.passage)} characters")

    (told,) = await dry(over(count, finish), 1, [Seed("a", "x" * 30)])
    assert told.asked[0].messages == (Message("user", "End 30 characters"),)


async def test_what_a_node_refuses_before_any_reply_ends_the_walk() -> None:
    @node
    def refuse(seen: Passage) -> Shown:
        raise Unmet("too plain", seen.passage[:3])

    @node
    def break_down(seen: Passage) -> Shown:
        raise KeyError("lost")

    class Longer(Struct):
        shown: Annotated[str, MinLen(5)]

    @node
    def fall_short(seen: Passage) -> Longer:
        return Longer.model_construct(shown="x")

    for wrong, said in ((refuse, "too plain"), (break_down, "KeyError"), (fall_short, "shown is")):
        (told,) = await dry(over(wrong, finish), 1)
        assert said in told.ended
        assert not told.asked


async def test_what_a_node_does_with_a_stand_in_never_ends_the_walk() -> None:
    @node
    async def pick(seen: Passage, *, writer: Model) -> Shown:
        said = (await writer.chat([Message("user", seen.passage)])).text
        return Shown(shown={"yes": "a", "no": "b"}[said])

    @node
    async def insist(seen: Passage, *, writer: Model) -> Shown:
        while (said := (await writer.chat([Message("user", seen.passage)])).text) != "yes":
            pass
        return Shown(shown=said)

    for odd, note in ((pick, "failed on stand-ins (KeyError"), (insist, "asks on and on")):
        (told,) = await dry(over(odd, finish), 1)
        assert told.ended == ""
        assert told.asked[-1].messages[0].content == "End \u2039shown\u203a"
        assert note in told.notes[0]


async def test_a_node_that_cannot_be_is_an_error_and_no_stand_in() -> None:
    @node
    async def wrong(seen: Passage, *, writer: Model) -> Shown:
        await writer.chat([Message("user", seen.passage)])
        raise DeclarationError("a struct made while it runs cannot be")

    with pytest.raises(DeclarationError, match="while it runs"):
        await dry(over(wrong, finish), 1)


async def test_a_nested_graph_is_walked_through() -> None:
    @node
    async def jot(seen: Passage, *, writer: Model) -> Shown:
        return Shown(shown=(await writer.chat([Message("user", f"Jot {seen.passage}")])).text)

    inner = Graph.build(
        "inner",
        [gate("in", {"passage": Shape(str, min_len=20)}), jot, gate("out", {"shown": TEXT})],
        "in",
        "out",
    )
    (told,) = await dry(over(inner, finish), 1)
    assert told.path == ["start", "in", "jot", "out", "finish", "end"]
    assert told.asked[1].messages[0].content == "End \u2039shown\u203a"


class Item(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("annotation", "made"),
    [
        (str, "\u2039x\u203a"),
        (Annotated[str, MinLen(500)], "\u2039x\u203a"),
        (Literal["b", "a"], "a"),
        (bool, False),
        (int, 0),
        (Annotated[int, Ge(3)], 3),
        (Annotated[float, Ge(0), Le(1)], 0.0),
        (Annotated[float, Gt(0), Le(1)], 0.5),
        (Annotated[int, Le(-5)], -6),
        (list[str], ["\u2039x\u203a"]),
        (list[int], [0]),
        (list[dict[str, str]], [{"x": "\u2039x\u203a"}]),
        (tuple[str, ...], ("\u2039x\u203a",)),
        (set[str], {"\u2039x\u203a"}),
        (dict[str, str], {"x": "\u2039x\u203a"}),
        (Item, "\u2039x\u203a"),
    ],
)
def test_a_stand_in_is_of_its_type_and_says_its_name(annotation: object, made: object) -> None:
    shape = read_shape(annotation, "x")
    assert shape is not None
    assert stand_in("x", shape) == made


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.sampled_from([int, float]), st.booleans())
def test_a_stand_in_for_a_number_lies_within_its_bounds(
    low: int, more: int, base: type, opened: bool
) -> None:
    bounds = [
        {"low": low, "low_open": opened},
        {"high": low, "high_open": opened},
        {"low": low, "low_open": opened, "high": low + more + 1, "high_open": opened},
        {},
    ]
    for bound in bounds:
        shape = Shape(base, **bound)  # type: ignore[arg-type]
        assert shape.holds(stand_in("x", shape)), shape


def test_a_reply_by_schema_is_json_of_stand_ins() -> None:
    schema = {
        "type": "object",
        "properties": {
            "reply": {"type": "string"},
            "why": {"type": "string"},
            "mark": {"type": "integer", "minimum": 1},
            "verdict": {"enum": ["pass", "fail"]},
            "tags": {"type": "array"},
        },
    }
    assert by_schema(schema, "w") == (
        '{"reply": "w", "why": "\u2039why\u203a", "mark": 1, "verdict": "pass", "tags": []}'
    )
