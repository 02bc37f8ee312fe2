"""A small library on disk, run by scripted models, for tests of the commands."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from dataforge.commands.app import main

NODES = """
[shared]
role = "writer"
attempts = 2
prompt = "{style}: {passage}"
writes.text = "{reply}"
preconditions.passage = { type = "str" }
postconditions.text = { type = "str", min_len = 5 }
postconditions.form = "{name}"

[rap]
style = "Rap"

[news]
style = "News"
"""

STEPS = """
from typing import Annotated, Literal

from annotated_types import MinLen

from dataforge import Case, Judge, Message, Model, Rubric, Struct, node

RUBRIC = Rubric(name="answer/sound", criteria={"sense": "makes sense"}, system="", prompt="")


class Passage(Struct):
    passage: Annotated[str, MinLen(20)]


class Nothing(Struct):
    pass


class Asked(Struct):
    text: str
    critique: str | None = None


class Answered(Struct):
    answer: str


class Marked(Struct):
    verdict: Literal["pass", "fail", "undecided"]
    score: float | None = None
    feedback: str


class Passed(Struct):
    text: str
    answer: str
    verdict: Literal["pass"]


class Chat(Struct):
    messages: list[dict[str, str]]


@node
async def gate(seen: Passage) -> Nothing:
    return Nothing()


@node
async def answer(seen: Asked, *, answerer: Model) -> Answered:
    reply = await answerer.chat([Message("user", f"{seen.text} {seen.critique or ''}")])
    return Answered(answer=reply.text)


class Judged(Struct):
    text: str
    answer: str


@node(judges="answer")
async def grounded(seen: Judged, *, judge: Judge) -> Marked:
    verdict = await judge.judge(Case(instruction=seen.text, answer=seen.answer), RUBRIC)
    return Marked(verdict=verdict.status, score=verdict.score, feedback=verdict.feedback)


@node
async def chat(seen: Passed) -> Chat:
    return Chat(messages=[
        {"role": "user", "content": seen.text},
        {"role": "assistant", "content": seen.answer},
    ])
"""

GRAPH = """
description = "A passage, retold, and an answer to it."
source = "steps/gate"
nodes = ["transform/*"]
target = "steps/chat"

[[loop]]
name = "answered"
body = ["steps/answer", "steps/grounded"]
until.verdict = "pass"
critique = "feedback"
at_most = 3

[roles]
writer = "scripted:voice.py"
answerer = "scripted:voice.py"
judge = "code:coin"
"""

JUDGE = """
import hashlib
from typing import ClassVar

from dataforge import Case, Rubric, Verdict

WEIGHTS = "coin"


class Coin:
    __dataforge_role__: ClassVar[str] = "judge"

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        mark = hashlib.blake2b(case.answer.encode()).digest()[0] % 3
        return Verdict("fail" if mark == 0 else "pass", mark / 2, feedback="say more")


def open_judge() -> Coin:
    return Coin()
"""

VOICE = """
import hashlib
from pathlib import Path

WEIGHTS = "voice"


def reply(messages: list[dict[str, str]], params: dict[str, object]) -> str:
    asked = f"{messages[-1]['content']} {params['seed']}"
    with (Path(__file__).parent / "asked.txt").open("a") as file:
        file.write("asked\\n")
    return f"reply {hashlib.blake2b(asked.encode(), digest_size=5).hexdigest()}"
"""


def make_library(folder: Path, seeds: int = 8) -> Path:
    """Writes the library into `folder`, its scripted model beside it, and gives `folder`."""
    for name, text in {
        "nodes/transform.toml": NODES,
        "nodes/steps.py": STEPS,
        "graphs/small.toml": GRAPH.replace("voice.py", str(folder / "voice.py")),
        "judges/coin.py": JUDGE,
        "voice.py": VOICE,
        "seeds/passages.jsonl": "".join(
            json.dumps({"id": f"seed-{n}", "passage": f"passage number {n} about river {n}"}) + "\n"
            for n in range(seeds)
        ),
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def asked(library: Path) -> int:
    """How many calls the scripted model was asked for, over all runs."""
    path = library / "asked.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def dataforge(*args: str | Path) -> Result:
    """Runs the command line in this process."""
    return CliRunner().invoke(main, [str(each) for each in args])
