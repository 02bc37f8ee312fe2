"""`dataforge plan`: facts as they are written, plans, none, and the files for other planners."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pddl import parse_domain, parse_problem

from dataforge.commands.app import main


def plan(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def nodes(*arguments: str) -> list[list[str]]:
    result = plan(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return [each["nodes"] for each in json.loads(result.output)["plans"]]


def test_plans_are_listed_shortest_first_with_what_was_assumed() -> None:
    result = plan("--have", "passage", "--want", "answer", "--limit", "2")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "assuming passage: str of 500 to 6000 characters"
    assert lines[2] == (
        "1  transform/debate -> ask/contextual/argue -> answer/advocate   (answerer, writer)"
    )
    assert lines[-1] == "and more; --limit N lists them"


def test_a_graph_s_own_nodes_are_used_its_loops_among_them() -> None:
    found = nodes("single_turn_qa", "--have", "passage", "--want", "form=faq", "--want", "messages")
    assert all(way[0] == "transform/faq" and way[-1] == "sample/chat" for way in found)
    assert all(way[2].startswith("answered/") for way in found)


@pytest.mark.parametrize(
    ("facts", "first"),
    [
        (["--have", "text>=400", "--have", "text<=900", "--want", "task=summarize"],
         ["ask/contextual/summarize"]),
        (["--have", "passage>499", "--have", "passage<6001", "--want", "form=diary"],
         ["transform/diary"]),
        (["--have", "passage", "--want", "form=faq|diary"], ["transform/diary"]),
        (["--have", "passage", "--want", "!text"], []),
    ],
)  # fmt: skip
def test_facts_are_read_as_written(facts: list[str], first: list[str]) -> None:
    assert nodes(*facts)[0] == first


def test_where_no_walk_leads_it_says_what_is_lacking() -> None:
    result = plan("--have", "passage", "--want", "form=fax")
    assert result.exit_code == 1
    first, *rest = result.stderr.splitlines()
    assert first == "error: no walk leads from what is given to the goal"
    assert rest[0] == "  the goal is never met; what it lacks at best:"
    assert result.stdout == "assuming passage: str of 500 to 6000 characters\n\n"
    assert "form: needs 'fax', has 'debate'; no node gives that" in rest[-1]


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("pasage", "no node reads or writes 'pasage'; did you mean passage?"),
        ("!passage=x", "cannot be read; write FIELD, FIELD=a|b, FIELD>=20"),
        ("", "cannot be read; write FIELD"),
        ("passage>=many", "'many' is no number"),
        ("passage>=1.5", "a length is a whole number"),
        ("passage>=nan", "'nan' is no finite number"),
        ("passage<=1e999", "'1e999' is no finite number"),
        ("truncated>=1", "bool has neither size nor length"),
        ("truncated=yes", "'yes' cannot be: it is of type bool; known are False, True"),
        ("passage==400", "'==' is no sign; write passage=400, passage>=400 or passage<=400"),
        ("passage=>400", "'=>' is no sign; write passage=400, passage>=400 or passage<=400"),
        ("form=faq|", "an empty choice beside a '|'; write form=faq, with a '|' only between two"),
        ("form=|", "an empty choice beside a '|'; write form=a, with"),
        ("messages=x", "'x' cannot be: it is of type list"),
    ],
)
def test_a_fact_that_cannot_be_is_one_line(fact: str, said: str) -> None:
    result = plan("--have", fact, "--want", "answer")
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("spelt", ["true", "TRUE", "True", " true"])
def test_truth_is_spelt_in_any_case(spelt: str) -> None:
    facts = json.loads(plan("--have", f"truncated={spelt}", "--want", "passage", "--json").stdout)
    assert facts["have"] == {"truncated": "True"}


def test_no_plan_as_json_is_an_empty_list_and_why() -> None:
    result = plan("--have", "passage", "--want", "form=fax", "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["plans"] == []
    assert "form: needs 'fax', has 'debate'" in data["why"]
    assert json.loads(plan("--have", "passage", "--want", "answer", "--json").stdout)["why"] == ""


READERS = """
[shared]
role = "writer"
prompt = "{draft}"
writes.out = "{reply}"
postconditions.out = { type = "str" }
postconditions.by = "{name}"
[long]
preconditions.draft = { type = "str", min_len = 500 }
[short]
preconditions.draft = { type = "str", max_len = 400 }
[odd]
preconditions.draft = { type = "str" }
preconditions.sort = ["argue", "explain"]
"""


@pytest.fixture
def disagreeing(tmp_path: Path) -> Path:
    """A library whose nodes need different things of one field."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "read.toml").write_text(READERS)
    return tmp_path


def test_where_readers_disagree_none_wins_and_each_is_told_with_the_fact_it_needs(
    disagreeing: Path,
) -> None:
    want = ("--want", "out", "--library", str(disagreeing))
    result = plan("--have", "draft", *want)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "assuming draft: str; of its readers, these need more:",
        "  read/long: str of at least 500 characters (--have 'draft>=500')",
        "  read/short: str of at most 400 characters (--have 'draft<=400')",
        "",
    ]
    assert nodes("--have", "draft>=500", *want) == [["read/long"]]
    assert nodes("--have", "draft", "--have", "draft<=400", *want) == [["read/short"]]
    told = json.loads(plan("--have", "draft", *want, "--json").stdout)["asked_besides"]
    assert [each["node"] for each in told["draft"]] == ["read/long", "read/short"]


def test_a_choice_among_literals_is_not_assumed_but_told(disagreeing: Path) -> None:
    want = ("--want", "by=odd", "--library", str(disagreeing))
    result = plan("--have", "draft", "--have", "sort", *want)
    assert result.exit_code == 1
    assert "  read/odd: one of 'argue', 'explain' (--have 'sort=argue|explain')" in result.stdout
    assert nodes("--have", "draft", "--have", "sort=argue|explain", *want) == [["read/odd"]]


def test_readers_that_do_not_help_the_goal_have_no_say(disagreeing: Path) -> None:
    want = ("--want", "by=long", "--library", str(disagreeing))
    assert nodes("--have", "draft", *want) == [["read/long"]]


def test_too_many_states_on_the_way_speak_of_the_goal(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    table = "[n{0}]\npostconditions.f{0} = {{ type = 'str' }}\nwrites.f{0} = '{{{{reply}}}}'\n"
    tables = "".join(map(table.format, range(16))).replace("{{", "{").replace("}}", "}")
    (tmp_path / "nodes" / "many.toml").write_text(f"[shared]\nrole='writer'\nprompt='x'\n{tables}")
    wants = [each for number in range(16) for each in ("--want", f"f{number}")]
    result = plan(*wants, "--library", str(tmp_path))
    assert result.exit_code == 2
    assert "more than 20,000 states between what is given and the goal" in result.stderr
    assert "graph 'plan'" not in result.stderr


def test_two_facts_of_a_field_hold_both_or_are_refused() -> None:
    result = plan("--have", "text>=9", "--have", "text<=5", "--want", "answer")
    assert result.exit_code == 2
    assert "cannot be, with what is said of text before" in result.stderr


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = plan("--have", "passage", "--want", "answer", "--pddl", str(tmp_path / "file" / "x"))
    assert result.exit_code == 2
    assert "no folder can be made there" in result.stderr


@pytest.mark.parametrize("taken", ["domain.pddl", "problem.pddl"])
def test_both_files_are_written_or_neither(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).mkdir()
    result = plan("--have", "passage", "--want", "answer", "--pddl", str(tmp_path))
    assert result.exit_code == 2
    assert f"{taken} there is a folder; name another" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [taken]


def test_domain_and_problem_are_written_for_other_planners(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "planning"
    result = plan("--have", "passage", "--want", "answer", "--pddl", str(folder))
    assert result.exit_code == 0, result.output
    assert str(folder / "domain.pddl") in result.output
    assert len(parse_domain(folder / "domain.pddl").actions) > 20
    assert str(parse_problem(folder / "problem.pddl").domain_name) == "library"
