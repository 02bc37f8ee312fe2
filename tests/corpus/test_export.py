"""Exports say the same conversations in the forms that other trainers read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from dataforge.corpus.export import Exported, export
from dataforge.corpus.record import Call, Sample, Turn
from dataforge.corpus.store import write_calls, write_samples
from dataforge.errors import InputError, UsageError

PAIR = (Turn("user", "Ask ünï"), Turn("assistant", "Tell"))


def sample(*turns: Turn) -> Sample:
    return Sample(
        id="a" * 16,
        seed_id="s",
        walk=0,
        path=("x",),
        facts={},
        messages=turns or PAIR,
        score=1.0,
    )


def call(number: int, superseded: bool, finish: str = "stop") -> Call:
    return Call(
        id=f"{'a' * 16}-{number}",
        sample_id="a" * 16,
        node="ask/summary",
        kind="ask",
        step="ask/summary#0",
        attempt=1,
        superseded=superseded,
        finish=finish,
        messages=(Turn("system", "Be brief"), *PAIR),
        weights="voice",
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_samples(tmp_path / "corpus.parquet", [sample()])
    write_calls(tmp_path / "calls.parquet", [call(0, True), call(1, False)])
    return tmp_path


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_messages_hold_samples_then_calls_without_superseded_ones(run: Path) -> None:
    to = run / "out.jsonl"
    made = export(run / "corpus.parquet", run / "calls.parquet", to)
    assert made == Exported(samples=1, calls=1)
    assert [(row["id"], row["source"]) for row in rows(to)] == [
        ("a" * 16, "sample"),
        ("a" * 16 + "-1", "ask/summary"),
    ]
    assert rows(to)[0]["messages"] == [
        {"role": "user", "content": "Ask ünï"},
        {"role": "assistant", "content": "Tell"},
    ]


@pytest.mark.parametrize("finish", ["length", "refused", "tools"])
def test_replies_that_are_no_whole_answer_are_there_for_the_asking_alone(
    run: Path, finish: str
) -> None:
    write_calls(run / "calls.parquet", [call(0, False), call(1, False, finish)])
    samples, calls, to = run / "corpus.parquet", run / "calls.parquet", run / "out.jsonl"
    assert export(samples, calls, to) == Exported(samples=1, calls=1)
    assert export(samples, calls, to, every_call=True) == Exported(samples=1, calls=2)


@pytest.mark.parametrize(
    ("style", "key"), [("messages", "messages"), ("sharegpt", "conversations")]
)
def test_an_example_in_a_prompt_says_that_it_is_not_to_be_learned(
    run: Path, style: str, key: str
) -> None:
    shown = (Turn("user", "Q"), Turn("assistant", "Example", 0), *PAIR)
    write_calls(run / "calls.parquet", [replace(call(0, False), messages=shown)])
    to = run / "out.jsonl"
    export(run / "corpus.parquet", run / "calls.parquet", to, style)
    turns = rows(to)[1][key]
    assert isinstance(turns, list)
    assert [turn.get("weight") for turn in turns] == [None, 0, None, None]


def test_superseded_calls_and_no_calls_are_there_for_the_asking(run: Path) -> None:
    samples, calls, to = run / "corpus.parquet", run / "calls.parquet", run / "out.jsonl"
    assert export(samples, calls, to, every_call=True) == Exported(samples=1, calls=2)
    assert export(samples, None, to) == Exported(samples=1, calls=0)


def test_sharegpt_names_the_speakers_its_own_way(run: Path) -> None:
    to = run / "out.jsonl"
    export(run / "corpus.parquet", run / "calls.parquet", to, "sharegpt")
    assert rows(to)[1]["conversations"] == [
        {"from": "system", "value": "Be brief"},
        {"from": "human", "value": "Ask ünï"},
        {"from": "gpt", "value": "Tell"},
    ]


def test_alpaca_keeps_earlier_turns_as_history(run: Path) -> None:
    to = run / "out.jsonl"
    talk = (Turn("user", "One?"), Turn("assistant", "1"), Turn("user", "Two?"))
    write_samples(run / "corpus.parquet", [sample(*talk, Turn("assistant", "2"))])
    export(run / "corpus.parquet", None, to, "alpaca")
    (row,) = rows(to)
    assert (row["instruction"], row["output"]) == ("Two?", "2")
    assert row["history"] == [["One?", "1"]]
    write_samples(run / "corpus.parquet", [sample(*talk)])
    with pytest.raises(InputError, match="alpaca holds questions and answers in turn"):
        export(run / "corpus.parquet", None, to, "alpaca")
    assert len(rows(to)) == 1


@pytest.mark.parametrize("style", ["messages", "sharegpt", "alpaca"])
def test_parquet_holds_the_same_rows(run: Path, style: str) -> None:
    samples, calls = run / "corpus.parquet", run / "calls.parquet"
    export(samples, calls, run / "out.jsonl", style)
    export(samples, calls, run / "out.parquet", style)
    assert pl.read_parquet(run / "out.parquet").to_dicts() == rows(run / "out.jsonl")


def test_a_corpus_without_samples_is_an_empty_file(run: Path) -> None:
    write_samples(run / "corpus.parquet", [])
    for name in ("out.jsonl", "out.parquet"):
        made = export(run / "corpus.parquet", None, run / name)
        assert made == Exported(samples=0, calls=0)


def test_what_cannot_be_written_is_said(run: Path) -> None:
    samples = run / "corpus.parquet"
    with pytest.raises(UsageError, match=r"ends in \.jsonl or \.parquet"):
        export(samples, None, run / "out.csv")
    with pytest.raises(UsageError, match="there is no folder"):
        export(samples, None, run / "nowhere" / "out.jsonl")
    with pytest.raises(UsageError, match="there are messages, sharegpt, alpaca"):
        export(samples, None, run / "out.jsonl", "chatml")
