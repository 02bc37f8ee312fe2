"""`dataforge draw`: what it writes where."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from dataforge.commands.app import main


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A library as `init` writes it."""
    library = tmp_path / "mine"
    assert CliRunner().invoke(main, ["init", str(library)]).exit_code == 0
    return library


def draw(library: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["draw", "summaries", *arguments, "--library", str(library)])


def test_without_a_file_it_prints_mermaid(mine: Path) -> None:
    result = draw(mine)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(("flowchart", "graph"))
    assert "headline" in result.output
    assert not result.output.endswith("\n\n")


def test_a_file_is_drawn_by_its_suffix(mine: Path, tmp_path: Path) -> None:
    assert draw(mine, "--out", str(tmp_path / "a.mmd")).exit_code == 0
    assert (tmp_path / "a.mmd").read_text(encoding="utf-8").rstrip() == draw(mine).output.rstrip()
    result = draw(mine, "--out", str(tmp_path / "a.svg"))
    assert result.output == f"{tmp_path / 'a.svg'}: 4 nodes, 4 edges\n"
    picture = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert picture.tag.endswith("svg")
    assert "headline" in "".join(picture.itertext())
    result = draw(mine, "--out", str(tmp_path / "a.html"))
    assert result.output == f"{tmp_path / 'a.html'}: 4 nodes, 4 edges\n"
    assert "headline" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.png", ".png cannot be drawn; give a name that ends in .html, .svg or .mmd"),
        ("a", "a name without a suffix cannot be drawn"),
        ("gone/a.svg", "there is no folder"),
        ("gone/a.html", "there is no folder"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_wrong_usage_and_nothing_is_written(
    mine: Path, tmp_path: Path, name: str, said: str
) -> None:
    result = draw(mine, "--out", str(tmp_path / name))
    assert result.exit_code == 2
    assert said in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_faulty_graph_leaves_the_former_picture(mine: Path, tmp_path: Path) -> None:
    draw(mine, "--out", str(tmp_path / "a.svg"))
    before = (tmp_path / "a.svg").read_bytes()
    (mine / "nodes" / "sum_up.toml").write_text("broken")
    assert draw(mine, "--out", str(tmp_path / "a.svg")).exit_code == 2
    assert (tmp_path / "a.svg").read_bytes() == before
