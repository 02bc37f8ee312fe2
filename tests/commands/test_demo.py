"""`dataforge demo` goes the whole path: run, export, pack, train; then says where things lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.small import asked, dataforge, make_library

TRAINER = """
from dataforge.library.trainers import Report, Step, Trained, Training


def train(training: Training, report: Report) -> Trained:
    report("pretending to train")
    training.out.mkdir()
    (training.out / "config.json").write_text("{}")
    steps = training.steps or 1
    for step in range(1, steps + 1):
        report(
            Step(
                step=step, steps=steps, loss=2.0, lr=training.lr, grad_norm=1.0, tokens=10,
                trained_tokens=5, seconds=1.0, tokens_per_s=10.0,
            )
        )
    return Trained(
        out=training.out, steps=steps, tokens=10, losses=(2.0,) * steps, loss_before=2.5,
        loss_after=1.5, seconds=1.0, tokens_per_s=10.0,
    )
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small library, its graph in the place of the demo's and its trainer quick."""
    monkeypatch.chdir(tmp_path)
    made = make_library(tmp_path / "lib")
    (made / "graphs" / "small.toml").rename(made / "graphs" / "single_turn_qa.toml")
    (made / "trainers").mkdir()
    (made / "trainers" / "sft.py").write_text(TRAINER)
    return made


@pytest.mark.slow
def test_one_command_goes_the_whole_path_and_says_where_things_lie(library: Path) -> None:
    done = dataforge("demo", "--library", library, "--walks", "6", "--steps", "2")
    assert done.exit_code == 0, done.output
    for part in (
        "write poorly",
        "--model answerer=openai/gpt-4o-mini",
        "accepted",
        "tokens/s",
        "corpus      runs/demo/corpus.parquet",
        "shards      runs/demo/shards",
        "checkpoint  runs/demo/checkpoint  (loss 2.500 before, 1.500 after)",
        "run report  runs/demo/report.md",
    ):
        assert part in done.output
    for name in ("corpus.parquet", "samples.jsonl", "shards", "checkpoint", "report.md"):
        assert (Path("runs/demo") / name).exists()


def test_a_demo_on_the_users_own_passages_lies_beside_the_bundled_one(library: Path) -> None:
    # Passages that the gate turns away, so that the path ends where its table is shown.
    Path("mine.v2.jsonl").write_text(json.dumps({"text": "too short"}) + "\n")
    done = dataforge("demo", "--library", library, "--seeds", "mine.v2.jsonl", "--walks", "1")
    assert done.exit_code == 1
    assert "passage is not str of at least 20 characters" in done.output
    assert Path("runs/demo-mine/report.md").exists()
    assert asked(library) == 0
