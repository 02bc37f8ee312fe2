"""`run --dry`: every prompt of the first walks, no model opened, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.small import NODES, asked, dataforge, make_library


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_library(tmp_path / "lib", seeds=12)


def files(folder: Path) -> set[str]:
    return {path.as_posix() for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_the_prompts_of_three_walks_are_shown_and_nothing_is_opened_or_written(
    library: Path, tmp_path: Path
) -> None:
    before = files(tmp_path)
    done = dataforge("run", "small", "--library", library, "--dry")
    assert done.exit_code == 0, done.output
    assert done.output.count(": dry\n") == 3
    assert "opening" not in done.output
    assert files(tmp_path) == before
    assert asked(library) == 0
    assert re.search(r"    (Rap|News): passage number \d+ about river \d+\n", done.output)
    assert "    \u2039text\u203a" in done.output
    assert "4. steps/answer" not in done.output
    assert "3. steps/answer, in the loop's second round" in done.output
    assert "3 walks would ask 6 calls, or more where one is tried again." in done.output


def test_the_walks_are_those_the_run_begins_with(library: Path) -> None:
    chosen = ("--library", library, "--seed", "3", "--policy", "paths")
    told = dataforge("run", "small", *chosen, "--dry", "--walks", "5").output
    made = dataforge("run", "small", *chosen, "--walks", "5", "--preview", "5").stdout
    names = re.findall(r"^walk     (\w{16}): ", told, re.M)
    assert names == re.findall(r"^walk     (\w{16}): ", made, re.M)
    prompt = r"^ +((?:Rap|News): passage number .+)$"
    for name in names:
        first = told.partition(f"walk     {name}")[2]
        sent = made.partition(f"walk     {name}")[2]
        found, real = re.search(prompt, first, re.M), re.search(prompt, sent, re.M)
        assert found is not None and real is not None
        assert found[1] == real[1]


def test_no_model_need_be_there_nor_be_bound(library: Path) -> None:
    graph = library / "graphs" / "small.toml"
    graph.write_text(graph.read_text().partition("[roles]")[0])
    done = dataforge("run", "small", "--library", library, "--dry", "--walks", "1")
    assert done.exit_code == 0, done.output
    assert "writer = (to be bound)" in done.output
    elsewhere = ("--model", "writer=http://localhost:1/v1#none")
    done = dataforge("run", "small", "--library", library, "--dry", *elsewhere)
    assert "writer = http://localhost:1/v1#none" in done.output


def test_a_judge_that_is_a_model_shows_what_it_would_be_asked(library: Path) -> None:
    steps = library / "nodes" / "steps.py"
    steps.write_text(steps.read_text().replace('prompt="")', 'prompt="Mark {answer}")'))
    named = ("--model", "judge=embedded", "--dry", "--walks", "1")
    done = dataforge("run", "small", "--library", library, *named)
    assert "    Mark \u2039answer\u203a" in done.output
    assert "judge = embedded" in done.output


TEMPLATES = [
    ('prompt = "{style}: {passage}"', 'prompt = "{style}: {pasage}"', "{pasage} is neither"),
    ('prompt = "{style}: {passage}"', 'prompt = "{style}: {text}"', "{text} is neither a precondi"),
    ('prompt = "{style}: {passage}"', 'prompt = "{style}: {passage"', "a lone '{'"),
    ('prompt = "{style}: {passage}"', 'prompt = "{passage}"', "style: is no key of a prompt node"),
    ("[rap]", 'system = "{nobody}"\n\n[rap]', "{nobody} is neither"),
    ("[rap]", 'examples = [["{style} {x}", "y"]]\n\n[rap]', "{x} is neither"),
    ("[rap]", 'preconditions.note = { type = "str", optional = true }\n\n[rap]\nsystem = "{note}"',
     "{note} is an optional field; use it in append.note"),
    ("[rap]", 'preconditions.many = { type = "list[str]" }\n\n[rap]\nsystem = "{many}"',
     "{many} is neither text nor number"),
    ('writes.text = "{reply}"', 'writes.text = "{replay}"', "{replay} is neither"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), TEMPLATES)
@pytest.mark.parametrize("also", [[], ["--dry"], ["--preview", "2"]])
def test_a_template_that_names_what_nothing_fills_stops_a_run_before_any_model_is_opened(
    library: Path, old: str, new: str, said: str, also: list[str]
) -> None:
    assert old in NODES
    (library / "nodes" / "transform.toml").write_text(NODES.replace(old, new, 1))
    done = dataforge("run", "small", "--library", library, *also)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "transform.toml" in done.stderr
    assert "opening scripted" not in done.output
    assert asked(library) == 0
    assert not Path("runs").exists()


def test_a_rubric_that_names_what_nothing_fills_stops_a_run_too(library: Path) -> None:
    (library / "judges" / "sound.toml").write_text(
        '[sound]\njudges = "answer"\nprompt = "{answr}"\ncriteria.sense = "makes sense"\n'
    )
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 2
    assert "sound.toml [sound] prompt: {answr} is nothing a rubric knows" in done.stderr
    assert "opening" not in done.output


def test_a_rubric_in_python_that_names_what_nothing_fills_stops_a_run_too(library: Path) -> None:
    steps = library / "nodes" / "steps.py"
    steps.write_text(steps.read_text().replace('prompt="")', 'prompt="{answr}")'))
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 2
    assert (
        "steps.py:8: rubric 'answer/sound': its template cannot be filled ('answr')" in done.stderr
    )
    assert asked(library) == 0


def test_a_setting_of_the_graph_that_names_what_nothing_fills_stops_a_run_too(
    library: Path,
) -> None:
    graph = library / "graphs" / "small.toml"
    graph.write_text(f'{graph.read_text()}\n[settings."transform/rap"]\nstyle = "{{pasage}}"\n')
    done = dataforge("run", "small", "--library", library)
    assert done.exit_code == 2
    assert "prompt of transform/rap names {pasage}, which nothing fills" in done.stderr
    assert asked(library) == 0
