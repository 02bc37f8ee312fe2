"""What a node asks is told apart by its content, whenever it asks, and can always be written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import ClassVar, cast

import pytest

from dataforge.corpus.store import read_calls
from dataforge.errors import TransientModelError, Unmet
from dataforge.models.base import Message, Model, Params, Reply, TokenLogprob, ToolCall
from dataforge.models.judge import Case, Rubric
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import loop
from dataforge.plan.node import node
from dataforge.plan.shape import Shape
from dataforge.run.forge import Order, forge
from dataforge.run.halt import Halt
from dataforge.run.journal import ChatEntry, read_entry
from dataforge.run.roles import OpenJudge, OpenModel, Role
from dataforge.verifiers.verdict import Verdict
from tests.run.scene import (
    NODES,
    Asked,
    Passage,
    Rap,
    Text,
    Voice,
    answer,
    bytes_of,
    echo,
    grounded,
    hashed,
    no_sleep,
    order,
    run,
    told,
)


@node
async def branching(seen: Passage, *, writer: Model) -> Rap:
    """Four chains of two calls at once, two of which begin alike, and a call after them all."""

    async def chain(n: int) -> str:
        first = await told(writer, f"draft {n % 3}: {seen.passage}")
        return await told(writer, f"polish {n}: {first}")

    drafts = await asyncio.gather(*(chain(n) for n in range(4)))
    return Rap(text=await told(writer, f"choose of {drafts}"), form="rap")


BRANCHING = Graph.build(
    "small",
    [NODES[0], branching.renamed("transform/rap"), *NODES[3:]],
    "seed/gate",
    "sample/chat",
)


@dataclass
class Unsteady(Voice):
    """Replies in an order of its own."""

    order: int = 0
    limit: int = 32
    stop_after: int = -1
    halt: Halt = field(default_factory=lambda: Halt(no_sleep))

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        for _ in range(hashed(str(self.order), messages[-1].content) % 50):
            await asyncio.sleep(0)
        reply = await super().complete(messages, params)
        if len(self.asked) == self.stop_after:
            self.halt.stop()
        return reply


async def branched(voice: Unsteady, folder: Path, concurrency: int = 1) -> None:
    asked = replace(order(6, voice), graph=BRANCHING, concurrency=concurrency)
    await forge(asked, folder, lambda event: None, voice.halt)


async def test_the_order_in_which_replies_come_changes_no_byte(tmp_path: Path) -> None:
    for n in range(4):
        await branched(Unsteady(order=n), tmp_path / str(n), concurrency=1 + 5 * (n % 2))
    assert len({bytes_of(tmp_path / str(n)) for n in range(4)}) == 1
    calls = [c for c in read_calls(tmp_path / "0" / "calls.parquet") if c.node == "transform/rap"]
    assert len(calls) % 9 == 0
    assert calls


@pytest.mark.parametrize("stop_after", [3, 11, 30, 50])
async def test_a_node_stopped_within_its_chains_repeats_no_call(
    tmp_path: Path, stop_after: int
) -> None:
    whole, before, after = Unsteady(), Unsteady(order=1, stop_after=stop_after), Unsteady(order=2)
    await branched(whole, tmp_path / "whole")
    await branched(before, tmp_path / "run")
    await branched(after, tmp_path / "run")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "whole")
    assert sorted(before.asked + after.asked) == sorted(whole.asked)


async def test_the_same_question_asked_twice_is_two_calls_of_other_seeds(tmp_path: Path) -> None:
    seeds: list[int] = []

    def say(messages: Sequence[Message], params: Params) -> str:
        if messages[-1].content == "again":
            seeds.append(params.seed)
        return echo(messages, params)

    @node
    async def ask(seen: Text, *, writer: Model) -> Asked:
        first, second = await told(writer, "again"), await told(writer, "again")
        return Asked(instruction=first + second, task="summary")

    nodes = [ask.renamed("ask/summary") if each.name == "ask/summary" else each for each in NODES]
    graph = Graph.build("small", nodes, "seed/gate", "sample/chat")
    await run(replace(order(1, Voice(say)), graph=graph), tmp_path)
    assert len(set(seeds)) == 2


def marks(**changes: object) -> str:
    said = {"reasoning": "r", "marks": {"sense": 1}, "feedback": "be nicer", "verdict": "fail"}
    return json.dumps(said | changes)


HALF = "half a \ud83d"


class Halves:
    """A judge in code whose verdicts are full of half characters."""

    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        return Verdict(
            "fail", 0.0, {HALF: 0.5}, HALF, {HALF: [HALF, {"deep": HALF}]}, verifier=HALF
        )


def broken_by(kind: str) -> Order:
    """An order in which half a character comes in by one way or another."""

    def say(messages: Sequence[Message], params: Params) -> str:
        raise TransientModelError(HALF)

    @node
    async def ask(seen: Text, *, writer: Model) -> Asked:
        if kind == "unmet":
            raise Unmet(HALF, HALF)
        if kind == "bug":
            raise KeyError(HALF)
        if kind == "asked":
            await told(writer, HALF)
        return Asked(instruction=f"Say {HALF}.", task="summary")

    nodes = [ask.renamed("ask/summary") if each.name == "ask/summary" else each for each in NODES]
    graph = Graph.build("small", nodes, "seed/gate", "sample/chat")
    made = replace(order(3, Voice(say) if kind == "transport" else Voice()), graph=graph)
    judges: dict[str, Role] = {
        "model judge": OpenModel.of(
            "j", Voice(lambda m, p: marks(feedback=HALF, reasoning=HALF), "j")
        ),
        "code judge": OpenJudge("code:halves", Halves(), "halves", "1"),
    }
    return replace(made, players={**made.players, "judge": judges.get(kind, made.players["judge"])})


@pytest.mark.parametrize(
    "kind", ["model judge", "code judge", "unmet", "bug", "asked", "transport"]
)
async def test_half_a_character_ends_no_run_wherever_it_comes_from(
    tmp_path: Path, kind: str
) -> None:
    for _ in range(2):
        report = await run(broken_by(kind), tmp_path)
        assert report.accepted + report.rejected + report.failed == 3
    assert "half a" in (tmp_path / "walks.jsonl").read_text("utf-8")


FULL = Reply(
    text=HALF,
    finish="stop",
    tokens_in=1,
    tokens_out=1,
    reasoning=HALF,
    tool_calls=(ToolCall(HALF, HALF, HALF),),
    others=("whole", HALF),
    logprobs=(TokenLogprob(HALF, -1.0, ((HALF, -2.0),)),),
    refusal=HALF,
)


@dataclass
class Full(Voice):
    """Replies with all that a reply can hold."""

    params: list[Params] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        self.params.append(params)
        reply = await super().complete(messages, params)
        return replace(FULL, text=reply.text)


async def test_all_of_a_reply_is_kept_clean_and_found_again(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "look", "description": HALF}}
    seen: list[Reply] = []

    @node
    async def ask(said: Text, *, writer: Model) -> Asked:
        calls = (ToolCall("c", "look", HALF),)
        asked = [Message("user", said.text), Message("assistant", "", tool_calls=calls)]
        seen.append(await writer.chat(asked, n=2, tools=[tool], logprobs=1))
        return Asked(instruction=f"Say it: {seen[-1].text}", task="summary")

    nodes = [ask.renamed("ask/summary") if each.name == "ask/summary" else each for each in NODES]
    graph = Graph.build("small", nodes, "seed/gate", "sample/chat")
    voice = Full()
    await run(replace(order(2, voice), graph=graph), tmp_path)
    assert len(seen) == 2
    assert not any("\\ud83d" in ascii(reply) for reply in seen)
    assert all(reply.others[0] == "whole" and reply.tool_calls for reply in seen)
    path = tmp_path / "calls.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("rb") as file:
        starts = accumulate(map(len, lines[:-1]), initial=0)
        entries = [read_entry(file, start) for start in starts]
    kept = [each for each in entries if isinstance(each, ChatEntry) and each.params.tools]
    assert len(kept) == 2
    assert all(each.reply in seen and each.params in voice.params for each in kept)
    assert all(each.messages[1].tool_calls[0].name == "look" for each in kept)


def test_what_shapes_a_call_is_told_and_its_defaults_are_not() -> None:
    plain = Message("user", "U").told(), Params(temperature=0.0).told()
    assert plain[0] == {"role": "user", "content": "U"}
    assert plain[1].keys() == {"temperature", "top_p", "max_tokens", "seed", "schema"}
    tool = {"type": "function", "function": {"name": "look"}}
    told = [
        Params().told(),
        Params(n=2).told(),
        Params(tools=(tool,)).told(),
        Params(logprobs=0).told(),
        Message("assistant", "", tool_calls=(ToolCall("", "a", "b"),)).told(),
        Message("assistant", "", tool_calls=(ToolCall("", "a", "c"),)).told(),
        Message("tool", "", tool_call_id="a").told(),
    ]
    assert len({json.dumps(each) for each in told}) == len(told)


class Wild:
    """A judge with a bug: its score is none."""

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self, score: float) -> None:
        self.score = score

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        return Verdict("pass", self.score)


@pytest.mark.parametrize("score", [float("nan"), 1.5, -1.0])
async def test_a_judge_that_scores_wildly_fails_its_walks_and_spoils_no_run(
    tmp_path: Path, score: float
) -> None:
    made = order(3)
    wild = OpenJudge("code:wild", Wild(score), "wild", "1")
    for _ in range(2):
        report = await run(replace(made, players={**made.players, "judge": wild}), tmp_path)
        assert report.failed == 3
    assert "must lie in [0, 1]" in (tmp_path / "walks.jsonl").read_text()
    assert (await run(made, tmp_path.with_name("sound"))).failed == 0


def judged_again(voice: Voice, attempts: int = 2) -> Order:
    """An order whose judge is a chat model with so many attempts at each answer."""
    judging = replace(grounded.renamed("judge/grounded"), attempts=attempts)
    until = {"verdict": Shape(str, frozenset({"pass"}))}
    steps: list[Action] = [answer.renamed("answer/plain"), judging]
    nodes = [*NODES[:4], loop("answered", steps, until=until, at_most=3, critique="feedback")]
    graph = Graph.build("small", [*nodes, NODES[-1]], "seed/gate", "sample/chat")
    made = order(1)
    return replace(made, graph=graph, players={**made.players, "judge": OpenModel.of("j", voice)})


async def test_a_judge_that_stumbled_is_asked_again_about_the_same_answer(tmp_path: Path) -> None:
    heats: list[float] = []

    def say(messages: Sequence[Message], params: Params) -> str:
        heats.append(params.temperature)
        return "Well, " if len(heats) == 1 else marks(marks={"sense": 5}, verdict="pass")

    judge = Voice(say, weights="j")
    answerer = Voice()
    made = judged_again(judge)
    players = {**made.players, "answerer": OpenModel.of("voice", answerer)}
    report = await run(replace(made, players=players), tmp_path)
    assert report.accepted == 1
    assert len(answerer.asked) == 1
    assert len(set(judge.asked)) == 1
    # A cold judge would say the same again.
    assert heats[0] == 0.0 < heats[1]
    calls = [c for c in read_calls(tmp_path / "calls.parquet") if c.kind == "judge"]
    assert [(call.attempt, call.superseded) for call in calls] == [(1, True), (2, False)]


async def test_a_judge_that_stays_undecided_never_passes(tmp_path: Path) -> None:
    judge = Voice(lambda messages, params: "I like it!", weights="j")
    report = await run(judged_again(judge, attempts=3), tmp_path)
    (only,) = report.endings
    assert (only.node, only.reason) == ("judge/grounded", "undecided after 3 attempts")
    assert len(judge.asked) == 9
    walk = json.loads((tmp_path / "walks.jsonl").read_text())
    judging = [each for each in walk["attempts"] if each["node"] == "judge/grounded"]
    assert [cast("dict[str, object]", each)["superseded"] for each in judging[-3:]] == [
        True,
        True,
        False,
    ]
