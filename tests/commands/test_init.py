"""`dataforge init`: a library that is complete, sound and never written over another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dataforge.commands.app import main


def init(path: Path) -> Result:
    return CliRunner().invoke(main, ["init", str(path)])


def test_a_new_library_has_a_node_of_each_kind_a_graph_seeds_and_a_readme(tmp_path: Path) -> None:
    result = init(tmp_path / "mine")
    assert result.exit_code == 0, result.output
    written = {
        path.relative_to(tmp_path / "mine").as_posix()
        for path in (tmp_path / "mine").rglob("*")
        if path.is_file()
    }
    assert written == {
        *(".gitignore", "README.md", "graphs/summaries.toml", "nodes/pair.py"),
        *("nodes/sum_up.toml", "seeds/passages.jsonl"),
    }
    for name in written:
        assert f"wrote {tmp_path / 'mine' / name}" in result.output
    assert f"cd {tmp_path / 'mine'}\n  dataforge check summaries" in result.output


def test_an_empty_folder_is_used_and_a_full_one_left_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert init(tmp_path / "empty").exit_code == 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    result = init(tmp_path / "full")
    assert result.exit_code == 2
    assert "is not empty; give the name of a new folder" in result.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    result = init(tmp_path / "full" / "mine.txt")
    assert (result.exit_code, "is a file" in result.stderr) == (2, True)


def test_the_graph_of_a_new_library_fits_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    result = CliRunner().invoke(main, ["check", "summaries"])
    assert result.exit_code == 0, result.output
    assert "fits together" in result.output


@pytest.mark.slow
def test_a_new_library_runs_as_it_stands_with_a_scripted_model(tmp_path: Path) -> None:
    init(tmp_path / "mine")
    (tmp_path / "replies.py").write_text(
        "def reply(messages, params):\n    return 'A short and sober summary of the passage.'\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, str(Path(__file__).parents[2] / "cli.py")),
            *("run", "summaries", "--model", f"writer=scripted:{tmp_path / 'replies.py'}"),
        ],
        cwd=tmp_path / "mine",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "runs" / "summaries" / "corpus.parquet").is_file()
    assert "passage" in done.stdout + done.stderr, "the short passage is turned away and counted"
