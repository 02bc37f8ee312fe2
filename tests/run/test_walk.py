"""A walk keeps its promises, tries again where it may, and says where and why it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from annotated_types import MinLen
from pydantic import Field, StringConstraints

from dataforge.corpus.store import read_calls, read_samples
from dataforge.errors import ContextOverflow, ModelError, RequestRefused, Unmet
from dataforge.models.base import Message, Model, Params
from dataforge.models.judge import Case, Rubric
from dataforge.plan.action import Action
from dataforge.plan.graph import Graph
from dataforge.plan.node import node
from dataforge.plan.struct import Struct
from dataforge.run.forge import Order
from dataforge.run.report import Report
from dataforge.run.roles import OpenJudge, OpenModel
from dataforge.verifiers.verdict import Verdict
from tests.run.scene import (
    NODES,
    Asked,
    Coin,
    Nothing,
    Passage,
    Rap,
    Text,
    Voice,
    ask,
    bytes_of,
    echo,
    order,
    run,
)


def with_node(changed: Action, count: int = 1, voice: Voice | None = None) -> Order:
    """An order over the scene's graph with one node put in another's place."""
    nodes = [changed if each.name == changed.name else each for each in NODES]
    if changed.name == "transform/rap":
        nodes = [each for each in nodes if each.name != "transform/news"]
    graph = Graph.build("small", nodes, "seed/gate", "sample/chat")
    return replace(order(count, voice), graph=graph)


def ending(report: Report) -> tuple[str, str, str]:
    (only,) = report.endings
    return only.outcome, only.node, only.reason


def only_walk(folder: Path) -> dict[str, object]:
    (line,) = (folder / "walks.jsonl").read_text().splitlines()
    found: dict[str, object] = json.loads(line)
    return found


async def test_a_broken_promise_names_field_promise_and_value_and_is_tried_again(
    tmp_path: Path,
) -> None:
    def say(messages: Sequence[Message], params: Params) -> str:
        return "?" if messages[-1].content.startswith("Ask about") else echo(messages, params)

    voice = Voice(say)
    report = await run(order(1, voice), tmp_path)
    assert ending(report) == (
        "rejected",
        "ask/summary",
        "instruction is not str of at least 5 characters",
    )
    assert str(only_walk(tmp_path)["detail"]).startswith("'?' (1 characters)")
    assert len([asked for asked in voice.asked if asked.startswith("Ask about")]) == 2


async def test_each_attempt_is_drawn_anew(tmp_path: Path) -> None:
    seeds: list[int] = []

    def say(messages: Sequence[Message], params: Params) -> str:
        if messages[-1].content.startswith("Ask about"):
            seeds.append(params.seed)
            return "?" if len(seeds) == 1 else "What is it about?"
        return echo(messages, params)

    report = await run(judged_by(Kind(), Voice(say)), tmp_path)
    assert report.accepted == 1
    assert len(set(seeds)) == 2
    calls = [c for c in read_calls(tmp_path / "calls.parquet") if c.node == "ask/summary"]
    assert [(call.attempt, call.superseded) for call in calls] == [(1, True), (2, False)]


def stops_iterating() -> str:
    return str(next(iter(())))


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


async def waits_for_what_it_cancelled() -> None:
    waited = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.sleep(0)
    waited.cancel()
    await waited


@pytest.mark.parametrize("fault", ["stop", "mute", "cancel", "stop in a thread"])
async def test_no_fault_of_a_node_hangs_or_ends_the_run(tmp_path: Path, fault: str) -> None:
    @node
    async def rap(seen: Passage, *, writer: Model) -> Rap:
        if fault == "stop":
            stops_iterating()
        if fault == "mute":
            raise Mute
        await waits_for_what_it_cancelled()
        raise AssertionError

    @node
    def threaded(seen: Passage) -> Rap:
        return Rap(text=stops_iterating(), form="rap")

    changed: Action = threaded if fault == "stop in a thread" else rap
    report = await run(with_node(changed.renamed("transform/rap"), count=3), tmp_path)
    assert (report.failed, report.pending) == (3, 0)
    assert {ending.node for ending in report.endings} == {"transform/rap"}


async def test_whatever_unmet_is_raised_with_is_words(tmp_path: Path) -> None:
    @node
    async def rap(seen: Passage, *, writer: Model) -> Rap:
        raise Unmet(3, {"too": "many"})  # type: ignore[arg-type]

    report = await run(with_node(rap.renamed("transform/rap")), tmp_path)
    assert ending(report) == ("rejected", "transform/rap", "3")
    assert only_walk(tmp_path)["detail"] == "{'too': 'many'}"


class Coded(Struct):
    text: Annotated[str, MinLen(5)]
    form: Annotated[Literal["rap"], Field(description="what it is")]
    code: Annotated[str, StringConstraints(pattern="^x")]
    counts: dict[str, int]


class Wider(Coded):
    code: str


FINE: dict[str, Any] = {"text": "words enough", "form": "rap", "code": "xyz", "counts": {"a": 1}}


def changed_after() -> Coded:
    made = Coded.model_validate(FINE)
    made.counts["a"] = "many"  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Coded.model_construct(**{**FINE, "code": "nope"}), "code is not str marked"),
        (lambda: Coded.model_validate(FINE).model_copy(update={"code": "no"}), "code is not str"),
        (lambda: Wider.model_validate({**FINE, "code": "nope"}), "code is not str marked"),
        (lambda: Coded.model_construct(**{**FINE, "code": None}), "code is not"),
        (lambda: Coded.model_construct(None, **{k: FINE[k] for k in ("text", "form")}), "code"),
        (changed_after, "counts is not dict[str, int]"),
    ],
)
async def test_a_promise_broken_around_the_struct_s_own_checks_is_the_liar_s(
    tmp_path: Path, made: Callable[[], Coded], said: str
) -> None:
    asked = []

    @node(attempts=2)
    async def rap(seen: Passage, *, writer: Model) -> Coded:
        asked.append(seen)
        return made()

    report = await run(with_node(rap.renamed("transform/rap")), tmp_path)
    outcome, where, reason = ending(report)
    assert (outcome, where, len(asked)) == ("rejected", "transform/rap", 2)
    assert reason.startswith(said)


async def test_an_attempt_sees_nothing_of_what_the_one_before_did_to_its_input(
    tmp_path: Path,
) -> None:
    class Listed(Struct):
        passage: str
        words: list[str]

    class Words(Struct):
        words: list[str]

    seen_words: list[list[str]] = []

    @node
    async def gate(seen: Passage) -> Words:
        return Words(words=["a"])

    @node(attempts=3)
    async def rap(seen: Listed, *, writer: Model) -> Rap:
        seen_words.append(list(seen.words))
        seen.words.append("junk")
        raise Unmet("never")

    nodes: list[Action] = [gate.renamed("seed/gate"), rap.renamed("transform/rap"), *NODES[3:]]
    graph = Graph.build("small", nodes, "seed/gate", "sample/chat")
    await run(replace(order(1), graph=graph), tmp_path)
    assert seen_words == [["a"], ["a"], ["a"]]


async def test_unmet_is_counted_by_its_reason(tmp_path: Path) -> None:
    @node(attempts=3)
    async def rap(seen: Passage, *, writer: Model) -> Rap:
        raise Unmet("nothing rhymes", "with orange")

    report = await run(with_node(rap.renamed("transform/rap")), tmp_path)
    assert ending(report) == ("rejected", "transform/rap", "nothing rhymes")
    walk = only_walk(tmp_path)
    assert walk["detail"] == "with orange"
    attempts = walk["attempts"]
    assert isinstance(attempts, list)
    assert [attempt["superseded"] for attempt in attempts[1:]] == [True, True, False]


async def test_a_bug_in_a_node_fails_its_walk_with_the_place_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    @node
    async def ask(seen: Text, *, writer: Model) -> Asked:
        raise KeyError("typo")

    report = await run(with_node(ask.renamed("ask/summary"), count=3), tmp_path)
    (only,) = report.endings
    assert (only.outcome, only.node, only.reason, only.count) == (
        "failed",
        "ask/summary",
        "KeyError",
        3,
    )
    assert "'typo' (test_walk.py:" in (tmp_path / "walks.jsonl").read_text()


async def test_a_node_that_returns_something_else_fails_its_walk(tmp_path: Path) -> None:
    @node
    async def ask(seen: Text, *, writer: Model) -> Asked:
        return Nothing()  # type: ignore[return-value]

    report = await run(with_node(ask.renamed("ask/summary")), tmp_path)
    assert ending(report) == ("failed", "ask/summary", "TypeError")
    assert "not Asked" in str(only_walk(tmp_path)["detail"])


async def test_a_struct_built_around_its_checks_is_checked_all_the_same(tmp_path: Path) -> None:
    @node
    async def ask(seen: Text, *, writer: Model) -> Asked:
        return Asked.model_construct(instruction="?", task="summary")

    report = await run(with_node(ask.renamed("ask/summary")), tmp_path)
    assert ending(report)[2] == "instruction is not str of at least 5 characters"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ContextOverflow("5,000 tokens asked for"), "does not fit the model's context"),
        (RequestRefused("content policy"), "the model refused the request"),
    ],
)
async def test_what_a_model_will_not_take_rejects_the_walk_without_another_try(
    tmp_path: Path, error: ModelError, reason: str
) -> None:
    def say(messages: Sequence[Message], params: Params) -> str:
        raise error

    voice = Voice(say)
    report = await run(order(1, voice), tmp_path)
    assert ending(report) == ("rejected", "transform/news", reason)
    assert only_walk(tmp_path)["detail"] == str(error)
    assert len(voice.asked) == 1


async def test_a_refused_passage_stops_no_other_walk(tmp_path: Path) -> None:
    def say(messages: Sequence[Message], params: Params) -> str:
        if "river 2" in messages[-1].content:
            raise RequestRefused("content policy")
        return echo(messages, params)

    report = await run(order(8, Voice(say)), tmp_path)
    refused = [each for each in report.endings if each.reason == "the model refused the request"]
    assert [each.count for each in refused] == [1]
    assert report.accepted + report.rejected == 8
    voice = Voice(say)
    await run(order(8, voice), tmp_path)
    assert not voice.asked


class Kind(Coin):
    """A judge that passes whatever it is shown."""

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        return Verdict("pass", 1.0)


class Never:
    """Fails whatever it judges, saying so differently each time."""

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self) -> None:
        self.cases: list[str] = []

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        self.cases.append(case.answer)
        return Verdict("fail", 0.1, feedback=f"objection {len(self.cases)}")


def judged_by(judge: Never | Coin, voice: Voice) -> Order:
    asked = order(1, voice)
    return replace(
        asked, players={**asked.players, "judge": OpenJudge("code:it", judge, "it", "1")}
    )


async def test_a_loop_starts_each_round_afresh_with_the_critique_of_the_last(
    tmp_path: Path,
) -> None:
    voice, judge = Voice(), Never()
    report = await run(judged_by(judge, voice), tmp_path)
    assert ending(report) == ("rejected", "judge/grounded", "fail after 3 attempts")
    assert only_walk(tmp_path)["detail"] == "objection 3"
    rounds = voice.asked[-3:]
    first = rounds[0]
    assert rounds == [first, f"{first} (objection 1)", f"{first} (objection 2)"]
    assert len(set(judge.cases)) == 3


class Speechless(Never):
    """A judge that cannot decide, and so has nothing to say."""

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        return Verdict("undecided")


async def test_a_judge_with_nothing_to_say_leaves_no_critique(tmp_path: Path) -> None:
    voice = Voice()
    report = await run(judged_by(Speechless(), voice), tmp_path)
    assert ending(report) == ("rejected", "judge/grounded", "undecided after 3 attempts")
    assert len(set(voice.asked[-3:])) == 1


async def test_earlier_rounds_are_superseded_and_kept(tmp_path: Path) -> None:
    report = await run(order(40), tmp_path)
    assert report.accepted
    calls = [c for c in read_calls(tmp_path / "calls.parquet") if c.node == "answer/plain"]
    again = {call.sample_id for call in calls if call.step == "answer/plain#1"}
    assert again
    for call in calls:
        later = any(c.sample_id == call.sample_id and c.step > call.step for c in calls)
        assert call.superseded == later


class Broken:
    """A judge whose infrastructure fails so many times, then passes."""

    __dataforge_role__: ClassVar[str] = "judge"

    def __init__(self, times: int) -> None:
        self.left = times

    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        self.left -= 1
        if self.left >= 0:
            return Verdict("error", feedback="no embeddings")
        return Verdict("pass", 1.0)


@pytest.mark.parametrize(("times", "outcome"), [(3, "accepted"), (99, "failed")])
async def test_a_judge_that_could_not_judge_is_asked_again_and_never_scored(
    tmp_path: Path, times: int, outcome: Literal["accepted", "failed"]
) -> None:
    asked = order(1)
    broken = OpenJudge("code:it", Broken(times), "it", "1")
    report = await run(replace(asked, players={**asked.players, "judge": broken}), tmp_path)
    assert getattr(report, outcome) == 1
    assert '"status":"error"' not in (tmp_path / "calls.jsonl").read_text()
    if outcome == "failed":
        assert ending(report) == ("failed", "judge/grounded", "the model kept failing")
        assert "no embeddings" in str(only_walk(tmp_path)["detail"])


async def test_a_graph_within_a_graph_gives_the_samples_of_the_flat_one(tmp_path: Path) -> None:
    inner = Graph.build("retold", NODES[:4], "seed/gate", "ask/summary")

    @node
    async def door(seen: Passage) -> Nothing:
        return Nothing()

    outer = [door, inner, *NODES[4:]]
    nested = Graph.build("small", outer, "door", "sample/chat")
    await run(order(30), tmp_path / "flat")
    await run(replace(order(30), graph=nested), tmp_path / "nested")
    flat = list(read_samples(tmp_path / "flat" / "corpus.parquet"))
    within = list(read_samples(tmp_path / "nested" / "corpus.parquet"))
    assert [sample.messages for sample in within] == [sample.messages for sample in flat]
    assert [sample.path[1:] for sample in within] == [sample.path for sample in flat]


async def test_a_graph_nested_six_deep_gives_the_samples_of_the_flat_one(tmp_path: Path) -> None:
    within: Action = Graph.build("depth1", NODES[:4], "seed/gate", "ask/summary")
    for depth in range(2, 7):

        @node
        async def door(seen: Passage) -> Nothing:
            return Nothing()

        source = door.renamed(f"door{depth}")
        within = Graph.build(f"depth{depth}", [source, within], source.name, within.name)
    first = door.renamed("door")
    nested = Graph.build("small", [first, within, *NODES[4:]], "door", "sample/chat")
    assert nested.count_walks() == order(1).graph.count_walks()
    await run(order(30), tmp_path / "flat")
    await run(replace(order(30), graph=nested), tmp_path / "nested")
    flat = list(read_samples(tmp_path / "flat" / "corpus.parquet"))
    deep = list(read_samples(tmp_path / "nested" / "corpus.parquet"))
    assert [sample.messages for sample in deep] == [sample.messages for sample in flat]


async def test_a_graph_within_a_graph_sees_only_the_fields_of_its_source(tmp_path: Path) -> None:
    moods: list[str | None] = []

    class Mood(Struct):
        mood: str

    class Moody(Passage):
        mood: str | None = None

    @node
    async def feel(seen: Passage) -> Mood:
        return Mood(mood="glad")

    @node
    async def tell(seen: Moody) -> Rap:
        moods.append(seen.mood)
        return Rap(text="told anyway", form="rap")

    inner = Graph.build("retold", [NODES[0], tell], "seed/gate", "tell")
    nodes = [feel, inner, ask.renamed("ask/summary"), *NODES[4:]]
    graph = Graph.build("small", nodes, "feel", "sample/chat")
    report = await run(replace(judged_by(Kind(), Voice()), graph=graph), tmp_path)
    assert moods == [None]
    assert report.accepted == 1


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "messages do not end with an answer"),
        ([{"role": "user", "content": "Q"}], "messages do not end with an answer"),
        ([{"role": "human", "content": "Q"}], "a turn has text and one of the roles"),
        ([{"role": "assistant"}], "a turn holds a role and a content and no more"),
        ([{"role": "assistant", "content": "A", "name": "x"}], "a turn holds a role and a content"),
    ],
)
async def test_what_cannot_be_trained_on_is_not_accepted(
    tmp_path: Path, messages: list[dict[str, str]], reason: str
) -> None:
    class Said(Struct):
        messages: list[dict[str, str]]

    @node
    async def chat(seen: Asked) -> Said:
        return Said(messages=messages)

    nodes = [*NODES[:4], chat.renamed("sample/chat")]
    graph = Graph.build("small", nodes, "seed/gate", "sample/chat")
    report = await run(replace(order(1), graph=graph), tmp_path)
    outcome, at, why = ending(report)
    assert (outcome, at) == ("rejected", "sample/chat")
    assert why.startswith(reason)


async def test_an_example_in_a_prompt_is_kept_as_one_not_to_be_learned(tmp_path: Path) -> None:
    @node
    async def ask(seen: Text, *, writer: Model) -> Asked:
        shown = [Message("user", "Ask."), Message("assistant", "Why?"), Message("user", "Ask!")]
        return Asked(instruction=(await writer.chat(shown)).text, task="summary")

    asked = with_node(ask.renamed("ask/summary"))
    players = {**asked.players, "judge": OpenJudge("code:kind", Kind(), "kind", "1")}
    await run(replace(asked, players=players), tmp_path)
    (asking,) = [c for c in read_calls(tmp_path / "calls.parquet") if c.kind == "ask"]
    assert [turn.weight for turn in asking.messages] == [1, 0, 1, 1]
    assert asking.finish == "stop"


async def test_facts_are_the_literals_known_at_the_end(tmp_path: Path) -> None:
    await run(order(20), tmp_path)
    for sample in read_samples(tmp_path / "corpus.parquet"):
        assert set(sample.facts) == {"form", "task", "verdict"}
        assert sample.facts["form"] in ("rap", "news")
        assert sample.score is not None


async def test_lone_surrogates_and_nuls_break_no_file(tmp_path: Path) -> None:
    def say(messages: Sequence[Message], params: Params) -> str:
        return f"a \ud83d b \0 c {echo(messages, params)}"

    await run(order(5, Voice(say)), tmp_path)
    before = bytes_of(tmp_path)
    await run(order(5, Voice(say)), tmp_path)
    assert bytes_of(tmp_path) == before
    assert "a \ufffd b \0 c" in next(read_samples(tmp_path / "corpus.parquet")).messages[0].content


def marking(marks: int, verdict: str) -> Voice:
    """A chat model that judges: the same marks and verdict for whatever it is shown."""
    said = {"reasoning": "read", "marks": {"sense": marks}, "feedback": "more", "verdict": verdict}
    return Voice(lambda messages, params: json.dumps(said), weights="marker")


async def judged_by_model(voice: Voice, folder: Path) -> Report:
    asked = order(1)
    players = {**asked.players, "judge": OpenModel.of("marker", voice)}
    return await run(replace(asked, players=players), folder)


async def test_a_chat_model_judges_and_its_calls_are_kept_as_data(tmp_path: Path) -> None:
    report = await judged_by_model(marking(5, "pass"), tmp_path)
    assert report.accepted == 1
    (judging,) = [c for c in read_calls(tmp_path / "calls.parquet") if c.kind == "judge"]
    assert (judging.node, judging.weights) == ("judge/grounded", "marker")
    assert next(read_samples(tmp_path / "corpus.parquet")).score == 1.0


async def test_a_failing_chat_judge_sends_its_feedback_round(tmp_path: Path) -> None:
    report = await judged_by_model(marking(1, "fail"), tmp_path)
    assert ending(report) == ("rejected", "judge/grounded", "fail after 3 attempts")
    assert only_walk(tmp_path)["detail"] == "more"


async def test_a_verdict_that_cannot_be_read_never_passes(tmp_path: Path) -> None:
    voice = Voice(lambda messages, params: "I would say it passes!", weights="marker")
    report = await judged_by_model(voice, tmp_path)
    assert ending(report) == ("rejected", "judge/grounded", "undecided after 3 attempts")
