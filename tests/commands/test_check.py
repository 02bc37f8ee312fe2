"""`dataforge check`: what it says of a sound graph, a faulty one and a whole library."""

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


def check(library: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments, "--library", str(library)])


def test_a_sound_graph_is_told_by_its_walks_nodes_and_edges(mine: Path) -> None:
    result = check(mine, "summaries")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert f"summaries ({mine / 'graphs' / 'summaries.toml'}): fits together" in said
    assert "walks 2, each of 3 nodes nodes 4 edges 4: 2 tight, 2 carried" in said
    assert "takes passage: str of 300 to 4000 characters" in said
    assert "roles writer = embedded" in said
    assert "source -> sum_up/{headline, sentence} sum_up/{headline, sentence} ..> pair" in said
    assert "notices" not in said


def test_as_json_it_gives_nodes_edges_and_walks(mine: Path) -> None:
    result = check(mine, "summaries", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert [node["name"] for node in data["nodes"]] == [
        *("pair", "source", "sum_up/headline", "sum_up/sentence"),
    ]
    assert {"before": "sum_up/headline", "after": "pair", "kind": "carried"} in data["edges"]
    assert (data["walks"], data["shortest"], data["longest"]) == (2, 3, 3)
    assert (data["source"], data["target"]) == ("source", "pair")
    assert data["roles"] == {"writer": "embedded"}
    assert data["nodes"][2]["gives"]["kind"] == "'headline'"


def test_a_dropped_in_table_is_walked_with_no_other_edit(mine: Path) -> None:
    with (mine / "nodes" / "sum_up.toml").open("a", encoding="utf-8") as file:
        file.write('\n[haiku]\nform = "a haiku of three lines"\n')
    data = json.loads(check(mine, "summaries", "--json").output)
    assert data["walks"] == 3


def test_an_idle_node_is_a_notice_with_what_it_lacks(mine: Path) -> None:
    with (mine / "nodes" / "sum_up.toml").open("a", encoding="utf-8") as file:
        file.write('\n[poem]\nform = "a poem"\npreconditions.mood = "merry"\n')
    result = check(mine, "summaries")
    assert result.exit_code == 0
    notice = result.output.partition("notices\n")[2]
    assert notice.startswith("  sum_up/poem")
    assert "mood" in notice


def test_the_weights_rule_is_told_and_a_binding_that_breaks_it() -> None:
    said = CliRunner().invoke(main, ["check", "single_turn_qa"]).output
    assert "rule    judge judges what answerer wrote, and must be of other weights\n" in said
    assert "ambiguous overlaps" not in said


def test_the_rule_is_broken_where_judge_and_judged_are_bound_alike(mine: Path) -> None:
    graph = Path(__file__).parents[2] / "graphs" / "single_turn_qa.toml"
    text = graph.read_text().replace('"code:likeness"', '"embedded"')
    (mine / "graphs" / "own.toml").write_text(text)
    said = " ".join(check(mine, "own").output.split())
    assert "bound to the same as answerer here, it may not: use --model" in said


def test_overlaps_and_the_policy_are_told(mine: Path) -> None:
    with (mine / "nodes" / "sum_up.toml").open("a", encoding="utf-8") as file:
        file.write('\n[blurb]\nform = "a blurb"\nwrites.kind = "{reply}"\n')
        file.write('writes.summary = "{reply}"\npostconditions.kind = ["headline", "blurb"]\n')
    graph = mine / "graphs" / "summaries.toml"
    graph.write_text('policy = "cover"\n' + graph.read_text())
    said = " ".join(check(mine, "summaries").output.split())
    assert "policy cover" in said
    assert "ambiguous overlaps kind: 'headline' may come from sum_up/blurb" in said


def test_a_policy_that_is_none_names_the_nearest(mine: Path) -> None:
    graph = mine / "graphs" / "summaries.toml"
    graph.write_text('policy = "path"\n' + graph.read_text())
    result = check(mine, "summaries")
    assert result.exit_code == 2
    assert "policy: 'path' is no walk policy; did you mean 'paths'" in result.stderr


def test_a_faulty_graph_is_one_error_and_no_traceback(mine: Path) -> None:
    (mine / "nodes" / "pair.py").write_text(
        (mine / "nodes" / "pair.py").read_text().replace("summary: str", "summery: str")
    )
    result = check(mine, "summaries")
    assert result.exit_code == 2
    assert result.stdout == ""
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"error: {mine / 'graphs' / 'summaries.toml'}: ")
    assert "summery" in result.stderr


def test_without_a_graph_it_checks_all_and_lists_the_nodes(mine: Path) -> None:
    result = check(mine)
    assert result.exit_code == 0, result.output
    assert "summaries: 4 nodes, 2 walks" in result.output
    assert "sum_up/ headline, sentence" in result.output
    assert "single_turn_qa: " in result.output


def test_without_a_graph_a_faulty_one_fails_the_check_and_the_others_are_told(mine: Path) -> None:
    (mine / "graphs" / "broken.toml").write_text('source = "pair"\n')
    result = check(mine)
    assert result.exit_code == 1
    assert "broken: FAULTY: " in result.output
    assert "summaries: 4 nodes, 2 walks" in result.output
    assert "error: 1 of 3 graphs cannot be built" in result.stderr
    data = json.loads(check(mine, "--json").stdout)
    assert list(data["faults"]) == ["broken"]


def test_a_library_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    result = check(tmp_path, "summaries")
    assert result.exit_code == 2
    assert "holds no content" in result.stderr


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("embeded", "role 'writer': embeded: no such model; did you mean 'embedded'?"),
        ("http://localhost:8000/v1", "role 'writer': http://localhost:8000/v1: name the model"),
        ("code:likeness", "role 'writer': code:likeness: is a judge in code, which can play only"),
        ("embedded?contxt=9", "role 'writer': embedded?contxt=9: there is no option 'contxt'"),
    ],
)
def test_a_default_model_that_cannot_be_is_found(mine: Path, spec: str, said: str) -> None:
    graph = mine / "graphs" / "summaries.toml"
    graph.write_text(graph.read_text().replace('"embedded"', f'"{spec}"'))
    result = check(mine, "summaries")
    assert result.exit_code == 2
    assert said in result.stderr
    assert "summaries: FAULTY: " in check(mine).output


def test_a_default_judge_in_code_that_is_not_there_is_found(mine: Path) -> None:
    graph = Path(__file__).parents[2] / "graphs" / "single_turn_qa.toml"
    text = graph.read_text().replace('"code:likeness"', '"code:likness"')
    (mine / "graphs" / "own.toml").write_text(text)
    result = check(mine, "own")
    assert result.exit_code == 2
    assert "there is no judges/likness in mine" in result.stderr


def test_it_is_said_that_a_nested_graph_counts_as_one_step(mine: Path) -> None:
    outer = """
source = { passage = { type = "str", min_len = 300, max_len = 4000 } }
nodes = ["graph:summaries"]
target = { messages = { type = "list[dict[str, str]]" } }
"""
    (mine / "graphs" / "outer.toml").write_text(outer)
    said = check(mine, "outer").output
    assert "walks   2, each of 3 nodes; all of summaries counts as one" in said
    assert "counts as one" not in check(mine, "summaries").output
