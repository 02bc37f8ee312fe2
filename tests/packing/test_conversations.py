"""Reading what is to be packed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from dataforge.corpus.record import Call, Sample, Turn
from dataforge.corpus.store import write_calls, write_samples
from dataforge.errors import InputError
from dataforge.packing.conversations import Conversation, Refused, read_conversations

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def turns(reply: str) -> tuple[Turn, ...]:
    return (Turn("user", "Hi"), Turn("assistant", reply))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with one sample and two calls, one of them superseded."""
    sample = Sample(
        id="s",
        seed_id="1",
        walk=0,
        path=("a",),
        facts={},
        messages=turns("final"),
        score=None,
    )
    write_samples(tmp_path / "corpus.parquet", [sample])
    calls = [
        Call(
            id=f"s-{number}",
            sample_id="s",
            node="answer/plain",
            kind="answer",
            step="answer/plain#0",
            attempt=number,
            superseded=number == 1,
            finish="stop",
            messages=turns(f"call {number}"),
            weights="w",
        )
        for number in (1, 2)
    ]
    write_calls(tmp_path / "calls.parquet", calls)
    return tmp_path


def test_a_run_gives_its_samples_and_the_calls_that_counted(run: Path) -> None:
    found = [item for item in read_conversations(run) if isinstance(item, Conversation)]
    assert [item.id for item in found] == ["s", "s-2"]
    assert found[1].turns[-1] == {"role": "assistant", "content": "call 2"}


def test_calls_can_be_left_out(run: Path) -> None:
    assert [item.id for item in read_conversations(run, calls=False)] == ["s"]


def test_lines_that_are_no_conversations_are_listed_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    good = json.dumps({"id": "good", "messages": MESSAGES}).encode()
    lines = [
        good,
        b"{",
        b"",
        b"\xff\xfe",
        b"[1]",
        b'{"messages": []}',
        b'{"text": "x"}',
        b'{"messages": [{"role": "robot", "content": "x"}]}',
        b'{"messages": [{"role": "user", "content": 3}]}',
        json.dumps({"messages": MESSAGES}).encode(),
        b'{"messages": ' + b"[" * 100_000,
        b'{"messages": [{"role": "user", "content": "half a \\ud83d"}]}',
        b'{"messages": [{"role": "user", "content": "x", "weight": 0.5}]}',
        json.dumps({"id": "cut", "finish": "length", "messages": MESSAGES}).encode(),
        json.dumps({"id": "half \ud83d", "messages": MESSAGES}).encode(),
        json.dumps({"id": "no", "finish": "refused", "messages": MESSAGES}).encode(),
        json.dumps({"id": "waits", "finish": "tools", "messages": MESSAGES}).encode(),
    ]
    path.write_bytes(b"\n".join(lines))
    found = list(read_conversations(path))
    assert [item.id for item in found if isinstance(item, Conversation)] == [
        "good",
        "chats.jsonl:10",
        "chats.jsonl:15",
    ]
    assert [(item.id, item.reason) for item in found if isinstance(item, Refused)] == [
        ("chats.jsonl:2", "not JSON"),
        ("chats.jsonl:4", "not UTF-8"),
        ("chats.jsonl:5", "not an object with messages"),
        ("chats.jsonl:6", "no messages"),
        ("chats.jsonl:7", "no messages"),
        ("chats.jsonl:8", "malformed message"),
        ("chats.jsonl:9", "malformed message"),
        ("chats.jsonl:11", "not JSON"),
        ("chats.jsonl:12", "malformed message"),
        ("chats.jsonl:13", "malformed message"),
        ("cut", "reply cut at max_tokens"),
        ("no", "reply withheld"),
        ("waits", "reply without the tool calls it ended in"),
    ]


def test_what_a_turn_has_beyond_role_and_content_is_kept(tmp_path: Path) -> None:
    call = {"name": "look", "arguments": {"at": "x"}}
    messages = [MESSAGES[0], {"role": "assistant", "content": None, "tool_calls": [call]}]
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": messages}))
    (found,) = read_conversations(path)
    assert isinstance(found, Conversation)
    assert found.turns[1] == {"role": "assistant", "content": "", "tool_calls": [call]}


@pytest.mark.parametrize(
    "extra",
    [{"name": "\ud83d"}, {"\udc00": 1}, {"tool_calls": [{"arguments": {"at": ["x", "\ud83d"]}}]}],
)
def test_half_a_character_anywhere_in_a_turn_is_refused(
    tmp_path: Path, extra: dict[str, object]
) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": [MESSAGES[0], {**MESSAGES[1], **extra}]}))
    said = "message 1 has half a character"
    assert list(read_conversations(path)) == [Refused("chats.jsonl:1", "malformed message", said)]


@pytest.mark.parametrize("key", ["messages", "content", "weight", "tool_calls"])
def test_no_depth_of_nesting_stops_the_reading(tmp_path: Path, key: str) -> None:
    path = tmp_path / "chats.jsonl"
    # Around what the parser follows, and far beyond it.
    deep = ["[" * depth + "]" * depth for depth in (*range(850, 1_050, 5), 100_000)]
    turn = '{"messages": [{"role": "assistant", "content": "x", %s}]}'
    line = "{%s}" if key == "messages" else turn
    path.write_text("\n".join(line % f'"{key}": {nested}' for nested in deep))
    found = list(read_conversations(path))
    assert len(found) == len(deep)
    assert isinstance(found[-1], Refused) and found[-1].reason == "not JSON"


def test_tables_of_an_earlier_format_are_refused(run: Path) -> None:
    path = run / "calls.parquet"
    old = {"dataforge.table": "calls", "dataforge.format_version": "1"}
    pl.read_parquet(path).drop("finish").write_parquet(path, metadata=old)
    with pytest.raises(InputError, match=r"calls\.parquet: format version 1; .*dataforge run"):
        read_conversations(run)


def test_a_parquet_of_messages_will_do(tmp_path: Path) -> None:
    path = tmp_path / "chats.parquet"
    pl.DataFrame({"messages": [MESSAGES, MESSAGES[:1]]}).write_parquet(path)
    found = list(read_conversations(path))
    assert [item.id for item in found] == ["chats.parquet:0", "chats.parquet:1"]


def test_what_cannot_be_read_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "broken.parquet").write_text("hello")
    pl.DataFrame({"text": ["x"]}).write_parquet(tmp_path / "text.parquet")
    for name, said in {
        "": "no finished run lies here",
        "absent.jsonl": "no such file",
        "notes.txt": "cannot be packed",
        "broken.parquet": "not a Parquet file",
        "text.parquet": r"no column `messages` \(it has text\)",
    }.items():
        with pytest.raises(InputError, match=said):
            read_conversations(tmp_path / name)
