"""`dataforge export` writes a run for other trainers, or says why it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.small import dataforge, make_library


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    dataforge("run", "small", "--library", make_library(tmp_path / "lib"))
    return tmp_path / "runs" / "small"


def sources(path: Path) -> set[str]:
    return {json.loads(line)["source"] for line in path.read_text().splitlines()}


def test_samples_and_calls_go_into_one_file(made: Path, tmp_path: Path) -> None:
    done = dataforge("export", made, "--to", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    assert "samples" in done.output
    found = sources(tmp_path / "out.jsonl")
    assert "sample" in found
    assert "steps/answer" in found


def test_the_final_samples_alone(made: Path, tmp_path: Path) -> None:
    dataforge("export", made, "--to", tmp_path / "out.jsonl", "--no-calls")
    assert sources(tmp_path / "out.jsonl") == {"sample"}


def test_what_is_not_there_is_one_line(tmp_path: Path) -> None:
    nowhere = dataforge("export", tmp_path / "nowhere", "--to", tmp_path / "out.jsonl")
    assert (nowhere.exit_code, "no such run directory" in nowhere.output) == (2, True)
    empty = dataforge("export", tmp_path, "--to", tmp_path / "out.jsonl")
    assert (empty.exit_code, "there is no samples table here" in empty.output) == (2, True)
    assert not (tmp_path / "out.jsonl").exists()
