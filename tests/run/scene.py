"""A small graph with a voice and a judge made of hashes, for tests of the run engine.

The graph: gate -> rap or news -> ask -> answer and judge, at most 3 times -> chat.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le, MinLen

from dataforge.models.base import Message, Model, Params, Reply
from dataforge.models.judge import Case, Judge, Rubric
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.loop import loop
from dataforge.plan.node import node
from dataforge.plan.shape import Shape
from dataforge.plan.struct import Struct
from dataforge.run.events import Event
from dataforge.run.forge import Order, forge
from dataforge.run.halt import Halt
from dataforge.run.report import Report
from dataforge.run.roles import OpenJudge, OpenModel
from dataforge.run.seed import Seed, SeedStore
from dataforge.verifiers.verdict import Verdict

RUBRIC = Rubric(
    name="answer/sound",
    criteria={"sense": "it makes sense"},
    system="",
    prompt="Judge {answer} to {instruction} by {criteria} from 1 to {scale}.",
)


class Passage(Struct):
    passage: Annotated[str, MinLen(20)]


class Nothing(Struct):
    pass


class Text(Struct):
    text: Annotated[str, MinLen(5)]


class Rap(Text):
    form: Literal["rap"]


class News(Text):
    form: Literal["news"]


class Asked(Struct):
    instruction: Annotated[str, MinLen(5)]
    task: Literal["summary"]


class Answerable(Struct):
    text: str
    instruction: str
    critique: str | None = None


class Answered(Struct):
    answer: Annotated[str, MinLen(5)]


class Judged(Struct):
    instruction: str
    answer: str


class Marked(Struct):
    verdict: Literal["pass", "fail", "undecided"]
    score: Annotated[float, Ge(0), Le(1)] | None = None
    feedback: str


class Passed(Struct):
    instruction: str
    answer: str
    verdict: Literal["pass"]


class Chat(Struct):
    messages: list[dict[str, str]]


@node
async def gate(seen: Passage) -> Nothing:
    return Nothing()


async def told(model: Model, words: str) -> str:
    return (await model.chat([Message("user", words)], max_tokens=50)).text


@node(attempts=2)
async def rap(seen: Passage, *, writer: Model) -> Rap:
    return Rap(text=await told(writer, f"Rap: {seen.passage}"), form="rap")


@node(attempts=2)
async def news(seen: Passage, *, writer: Model) -> News:
    return News(text=await told(writer, f"News: {seen.passage}"), form="news")


@node(attempts=2)
async def ask(seen: Text, *, writer: Model) -> Asked:
    return Asked(instruction=await told(writer, f"Ask about: {seen.text}"), task="summary")


@node(attempts=2)
async def answer(seen: Answerable, *, answerer: Model) -> Answered:
    heard = "" if seen.critique is None else f" ({seen.critique})"
    words = f"{seen.instruction} {seen.text}{heard}"
    return Answered(answer=await told(answerer, words))


@node(judges="answer")
async def grounded(seen: Judged, *, judge: Judge) -> Marked:
    verdict = await judge.judge(Case(instruction=seen.instruction, answer=seen.answer), RUBRIC)
    assert verdict.status != "error"
    return Marked(verdict=verdict.status, score=verdict.score, feedback=verdict.feedback)


@node
async def chat(seen: Passed) -> Chat:
    return Chat(
        messages=[
            {"role": "user", "content": seen.instruction},
            {"role": "assistant", "content": seen.answer},
        ]
    )


ANSWERED = loop(
    "answered",
    [answer.renamed("answer/plain"), grounded.renamed("judge/grounded")],
    until={"verdict": Shape(str, frozenset({"pass"}))},
    at_most=3,
    critique="feedback",
)

NODES: list[Action] = [
    gate.renamed("seed/gate"),
    rap.renamed("transform/rap"),
    news.renamed("transform/news"),
    ask.renamed("ask/summary"),
    ANSWERED,
    chat.renamed("sample/chat"),
]

GRAPH = Graph.build("small", NODES, "seed/gate", "sample/chat")


def hashed(*parts: str) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=6).digest())


Say = Callable[[Sequence[Message], Params], str]


def echo(messages: Sequence[Message], params: Params) -> str:
    """A reply that depends on the question and the call's seed alone."""
    return f"reply {hashed(messages[-1].content, str(params.seed)):x}"


@dataclass
class Voice:
    """A transport whose replies are a function; what it raises is the endpoint's failure."""

    say: Say = echo
    weights: str = "voice"
    limit: int = 4
    asked: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        self.asked.append(messages[-1].content)
        try:
            # Gives way a varying number of times, so that walks end in no fixed order.
            for _ in range(hashed(messages[-1].content) % 7):
                await asyncio.sleep(0)
            text = self.say(messages, params)
        finally:
            self._at_once -= 1
        return Reply(text=text, finish="stop", tokens_in=10, tokens_out=len(text.split()))

    async def close(self) -> None: ...


@dataclass
class Coin:
    """A judge that passes two answers of three."""

    __dataforge_role__: ClassVar[str] = "judge"
    judged: int = 0

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        self.judged += 1
        mark = hashed(case.answer) % 3
        return Verdict(
            status="fail" if mark == 0 else "pass",
            score=mark / 2,
            feedback=f"say more than {case.answer}",
            verifier="coin",
        )


def seeds(count: int) -> list[Seed]:
    return [Seed(f"seed-{n}", f"passage number {n} about river {n}") for n in range(count)]


def order(count: int, voice: Voice | None = None, coin: Coin | None = None) -> Order:
    """An order for one walk each over `count` seeds."""
    model = OpenModel.of("voice", voice or Voice())
    return Order(
        graph=GRAPH,
        players={
            "writer": model,
            "answerer": model,
            "judge": OpenJudge("code:coin", coin or Coin(), "coin", "1"),
        },
        seeds=SeedStore.of("seeds.jsonl", seeds(count)),
        walks=count,
    )


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


async def run(order: Order, folder: Path, watch: Callable[[Event], None] | None = None) -> Report:
    """Runs an order to its end, without ever waiting."""
    return await forge(order, folder, watch or (lambda event: None), Halt(no_sleep))


def bytes_of(folder: Path) -> tuple[bytes, bytes]:
    """The bytes of the two tables of a run."""
    return (folder / "corpus.parquet").read_bytes(), (folder / "calls.parquet").read_bytes()
