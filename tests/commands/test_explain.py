"""`dataforge explain`: an edge, a missing one, and names that are no nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dataforge.commands.app import main


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A library as `init` writes it."""
    library = tmp_path / "mine"
    assert CliRunner().invoke(main, ["init", str(library)]).exit_code == 0
    return library


def explain(library: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments, "--library", str(library)])


def test_an_edge_is_told_with_its_needs_and_a_walk(mine: Path) -> None:
    result = explain(mine, "sum_up/headline", "pair")
    assert result.exit_code == 0, result.output
    first, reason, *rest = result.output.splitlines()
    assert first == "sum_up/headline -> pair: an edge, carried (graph summaries)"
    assert "earlier facts" in reason
    assert all(line.startswith("  ok ") for line in rest[1:-2])
    assert rest[-1] == "on the walk  source -> sum_up/headline"


def test_a_missing_edge_says_what_is_lacking(mine: Path) -> None:
    result = explain(mine, "source", "pair")
    assert result.exit_code == 0, result.output
    assert "no edge" in result.output
    assert "  LACKS summary: needs str" in result.output
    assert "given by sum_up/headline, sum_up/sentence" in result.output


def test_as_json_it_is_data(mine: Path) -> None:
    data = json.loads(explain(mine, "source", "sum_up/headline", "--json").output)
    assert (data["graph"], data["kind"], data["walk"]) == ("summaries", "tight", ["source"])
    assert {"passage", "summary"} <= {need["field"] for need in data["needs"]}


def test_a_name_that_is_no_node_names_the_nearest(mine: Path) -> None:
    result = explain(mine, "sum_up/headlin", "pair", "--graph", "summaries")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: sum_up/headlin is no node of graph summaries; did you mean sum_up/headline "
        "or sum_up/sentence?\n"
    )


def test_a_node_inside_a_loop_names_the_loop() -> None:
    result = CliRunner().invoke(main, ["explain", "answer/plain", "sample/chat"])
    assert result.exit_code == 2
    assert "it runs inside answered/plain+grounded; ask about that" in result.stderr


def test_two_graphs_that_hold_both_must_be_told_apart(mine: Path) -> None:
    graph = (mine / "graphs" / "summaries.toml").read_text()
    (mine / "graphs" / "again.toml").write_text(graph)
    result = explain(mine, "source", "pair")
    assert result.exit_code == 2
    assert "several graphs hold both: again, summaries; name one with --graph" in result.stderr


def test_a_nested_graph_is_asked_about_as_a_graph_s_file_names_it(mine: Path) -> None:
    outer = """
source = { passage = { type = "str", min_len = 300, max_len = 4000 } }
nodes = ["graph:summaries"]
target = { messages = { type = "list[dict[str, str]]" } }
"""
    (mine / "graphs" / "outer.toml").write_text(outer)
    for asked in (("graph:summaries", "target"), ("source", "graph:summaries")):
        told = explain(mine, *asked, "--graph", "outer")
        assert told.exit_code == 0, told.output
        assert "an edge" in told.output
