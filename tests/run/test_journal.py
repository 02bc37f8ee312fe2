"""A journal finds what is on disk, whole, under everything that shaped it, and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.models.base import Message, Params, Reply, TokenLogprob, ToolCall
from dataforge.models.judge import Case
from dataforge.run.journal import ChatEntry, Entry, Journal, VerdictEntry, asked_hash, call_key
from dataforge.verifiers.verdict import Verdict

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def chat(number: int, text: str = "reply", walk_id: str = "w0") -> ChatEntry:
    return ChatEntry(
        key=f"key-{number}",
        walk_id=walk_id,
        step="ask#0",
        attempt=1,
        name=f"asked#{number}",
        node="ask",
        role="writer",
        weights="voice",
        seconds=0.25,
        at="2025-01-01T00:00:00.000+00:00",
        messages=(Message("user", text),),
        params=Params(schema={"type": "object"}),
        reply=Reply(text=text, finish="length", tokens_in=3, tokens_out=4),
    )


def verdict(number: int) -> VerdictEntry:
    return VerdictEntry(
        key=f"key-{number}",
        walk_id="w0",
        step="judge#0",
        attempt=1,
        name=f"asked#{number}",
        node="judge",
        role="judge",
        weights="coin",
        seconds=0.25,
        at="2025-01-01T00:00:00.000+00:00",
        rubric="answer/sound",
        case=Case(instruction="ask", answer="told"),
        verdict=Verdict(
            "pass", 0.5, scores={"sense": None}, evidence={"found": [1, 2]}, verifier="coin"
        ),
    )


async def written(path: Path, entries: list[Entry]) -> None:
    journal = Journal.open(path, lambda walk_id: True)
    await asyncio.gather(*(journal.add(entry) for entry in entries))
    await journal.close()


@given(st.lists(TEXT, max_size=6), st.data())
def test_of_a_torn_journal_a_prefix_of_the_calls_is_found(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    entries: list[Entry] = [chat(number, text) for number, text in enumerate(texts)]
    path = tmp_path_factory.mktemp("journal") / "calls.jsonl"
    asyncio.run(written(path, entries))
    kept = data.draw(st.integers(0, path.stat().st_size))
    path.write_bytes(path.read_bytes()[:kept])

    async def found() -> list[Entry | None]:
        journal = Journal.open(path, lambda walk_id: True)
        hits = [journal.find(entry.key) for entry in entries]
        await journal.close()
        return [None if hit is None else hit[1] for hit in hits]

    hits = asyncio.run(found())
    whole = sum(hit is not None for hit in hits)
    assert hits == [*entries[:whole], *[None] * (len(entries) - whole)]


async def test_both_kinds_of_entry_come_back_as_they_were(tmp_path: Path) -> None:
    entries: list[Entry] = [chat(0, "ünï\u2028 \n\0 end"), verdict(1)]
    await written(tmp_path / "calls.jsonl", entries)
    journal = Journal.open(tmp_path / "calls.jsonl", lambda walk_id: True)
    assert [hit[1] for entry in entries if (hit := journal.find(entry.key))] == entries
    await journal.close()


async def test_all_that_a_call_can_hold_comes_back_as_it_was(tmp_path: Path) -> None:
    odd = "\0 ünï \u2028\n"
    calls = (ToolCall("", odd, '{"a": ['), ToolCall(odd, "look", odd))
    asked = (
        Message("user", odd),
        Message("assistant", "", tool_calls=calls),
        Message("tool", odd, tool_call_id=odd),
    )
    tool = {"type": "function", "function": {"name": odd, "parameters": {"enum": [1, None, odd]}}}
    reply = Reply(
        text="",
        finish="tools",
        tokens_in=2**53 - 1,
        tokens_out=1,
        tokens_reasoning=1,
        reasoning=odd,
        tool_calls=calls,
        others=(odd, ""),
        logprobs=(TokenLogprob(odd, -9999.0, ((odd, 0.0), ("b", -0.1))), TokenLogprob("", 0.0)),
        refusal=odd,
    )
    params = Params(n=2, tools=(tool,), logprobs=2)
    entry = chat(0).model_copy(update={"messages": asked, "params": params, "reply": reply})
    await written(tmp_path / "calls.jsonl", [entry])
    journal = Journal.open(tmp_path / "calls.jsonl", lambda walk_id: True)
    found = journal.find(entry.key)
    assert found is not None
    assert found[1] == entry
    await journal.close()


async def test_a_line_from_before_replies_held_more_is_still_read(tmp_path: Path) -> None:
    line = json.loads(chat(0).model_dump_json())
    for part, later in (
        ("params", ("n", "tools", "logprobs")),
        ("reply", ("reasoning", "tool_calls", "others", "logprobs", "refusal")),
    ):
        for name in later:
            del line[part][name]
    line["messages"] = [{"role": "user", "content": "reply"}]
    (tmp_path / "calls.jsonl").write_text(json.dumps(line) + "\n")
    journal = Journal.open(tmp_path / "calls.jsonl", lambda walk_id: True)
    found = journal.find("key-0")
    assert found is not None
    assert found[1] == chat(0)
    await journal.close()


async def test_calls_of_walks_that_ended_are_not_held(tmp_path: Path) -> None:
    entries: list[Entry] = [chat(0, walk_id="ended"), chat(1, walk_id="open")]
    await written(tmp_path / "calls.jsonl", entries)
    journal = Journal.open(tmp_path / "calls.jsonl", lambda walk_id: walk_id == "open")
    assert journal.find("key-0") is None
    assert journal.find("key-1") is not None
    await journal.close()


def test_a_name_and_a_key_cover_whatever_shapes_a_call() -> None:
    asked = {"messages": [{"role": "user", "content": "hello"}], "params": {"top_p": 1}}
    other = {"messages": [{"role": "user", "content": "hello"}], "params": {"top_p": 2}}
    names = {
        asked_hash("weights", asked),
        asked_hash("others", asked),
        asked_hash("weights", other),
    }
    assert len(names) == 3
    turned = {"params": {"top_p": 1}, "messages": [{"content": "hello", "role": "user"}]}
    assert asked_hash("weights", turned) in names
    keys = {
        call_key("name#0", "walk", "ask#0", 1),
        call_key("name#1", "walk", "ask#0", 1),
        call_key("name#0", "walk2", "ask#0", 1),
        call_key("name#0", "walk", "ask#1", 1),
        call_key("name#0", "walk", "ask#0", 2),
    }
    assert len(keys) == 5
