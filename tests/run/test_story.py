"""A walk can be told from the logs alone: seed, path, every call, every verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dataforge.corpus.store import read_calls, read_samples
from dataforge.errors import InputError
from dataforge.models.base import ToolCall
from dataforge.run.journal import ChatEntry
from dataforge.run.story import find_walk, tell, tell_data
from tests.run.scene import order, run


@pytest.fixture
async def made(tmp_path: Path) -> Path:
    await run(order(40), tmp_path / "run")
    return tmp_path / "run"


async def test_a_sample_is_told_from_seed_to_verdict(made: Path) -> None:
    call = next(c for c in read_calls(made / "calls.parquet") if c.superseded)
    text = tell(find_walk(made, call.sample_id[:7]), full=True)
    sample = next(s for s in read_samples(made / "corpus.parquet") if s.id == call.sample_id)
    for part in (
        f"walk     {sample.id}: accepted",
        f"seed     {sample.seed_id}, walk 0 of it",
        "passage number",
        "answer/plain  (superseded)",
        "answer/plain, time 2",
        "verdict: fail 0.00 by coin",
        "verdict: pass",
        "tokens in",
        "answerer = voice",
        sample.messages[0].content,
    ):
        assert part in text


async def test_what_a_reply_holds_beside_its_text_is_told(made: Path) -> None:
    story = find_walk(made, next(read_samples(made / "corpus.parquet")).id)
    at, entry = next(iter(story.calls.items()))
    assert isinstance(entry, ChatEntry)
    reply = replace(
        entry.reply,
        text="",
        finish="refused",
        reasoning="Hm, this one.",
        tool_calls=(ToolCall("c", "look", '{"at": "sky"}'),),
        others=("Another way.",),
        refusal="I cannot.",
    )
    calls = {**story.calls, at: entry.model_copy(update={"reply": reply})}
    text = tell(replace(story, calls=calls), full=True)
    for part in ("Hm, this one.", 'look {"at": "sky"}', "Another way.", "I cannot.", ", withheld,"):
        assert part in text


async def test_a_walk_is_found_by_its_seed_and_by_one_of_its_calls(made: Path) -> None:
    sample = next(read_samples(made / "corpus.parquet"))
    assert find_walk(made, sample.seed_id).walk.id == sample.id
    assert find_walk(made, f"{sample.id}-1").walk.id == sample.id


async def test_the_story_is_json_as_well(made: Path) -> None:
    sample = next(read_samples(made / "corpus.parquet"))
    told = json.loads(json.dumps(tell_data(find_walk(made, sample.id))))
    assert told["path"] == list(sample.path)
    assert len(told["journal"]) >= 3


async def test_long_texts_are_cut_unless_asked_for_in_full(made: Path) -> None:
    story = find_walk(made, next(read_samples(made / "corpus.parquet")).id)
    long = story.walk.model_copy(update={"passage": "start " + "x" * 2_000 + " end"})
    cut = tell(replace(story, walk=long), full=False)
    assert "1,310 characters, --full shows them" in cut.replace("\n    ", " ")
    assert "end" in cut
    assert "--full" not in tell(replace(story, walk=long), full=True)


async def test_an_id_of_no_walk_or_of_several_is_said(made: Path) -> None:
    with pytest.raises(InputError, match="no walk that has ended has an id that begins with 'zz'"):
        find_walk(made, "zz")
    with pytest.raises(InputError, match="means 40 walks"):
        find_walk(made, "")


async def test_a_folder_that_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run.json here"):
        find_walk(tmp_path, "a")
