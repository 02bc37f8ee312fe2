"""`dataforge show` tells a run and a walk from what is on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataforge.corpus.store import read_samples
from tests.commands.small import dataforge, make_library


@pytest.fixture
def sample_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of an accepted walk of a run in the working directory."""
    monkeypatch.chdir(tmp_path)
    dataforge("run", "small", "--library", make_library(tmp_path / "lib"))
    return next(read_samples(tmp_path / "runs" / "small" / "corpus.parquet")).id


def test_without_an_id_it_shows_the_latest_run(sample_id: str) -> None:
    shown = dataforge("show")
    assert shown.exit_code == 0, shown.output
    for part in ("runs/small: small over 8 seeds", "writer = scripted:", "accepted", sample_id):
        assert part in shown.output


def test_a_walk_is_shown_by_a_prefix_with_calls_and_verdicts(sample_id: str) -> None:
    shown = dataforge("show", sample_id[:6])
    assert shown.exit_code == 0, shown.output
    for part in (f"walk     {sample_id}", "steps/gate -> transform/", "reply", "verdict: pass"):
        assert part in shown.output


def test_both_are_json_as_well(sample_id: str) -> None:
    walk = json.loads(dataforge("show", sample_id, "--json").output)
    assert walk["outcome"] == "accepted"
    assert walk["journal"]
    whole = json.loads(dataforge("show", "--json").output)
    assert whole["walks"][sample_id] == "accepted"
    assert whole["report"]["walks"] == 8


def test_a_run_still_going_on_can_be_shown(sample_id: str) -> None:
    Path("runs/small/report.json").unlink()
    assert "not finished: 8 of 8 walks ended so far" in dataforge("show").output


def test_what_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = dataforge("show")
    assert (nothing.exit_code, "name one with --run DIR" in nothing.output) == (2, True)
    nowhere = dataforge("show", "abc", "--run", "nowhere")
    assert (nowhere.exit_code, "no run.json here" in nowhere.output) == (2, True)
