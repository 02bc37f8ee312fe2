"""`dataforge doctor`: what it looks at, what it says of faults, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dataforge.commands.app import main
from dataforge.commands.doctor import Finding

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sound() -> str:
    """What it says of this checkout, from a process of its own."""
    script = (
        "import sys\n"
        "from dataforge.commands.app import main\n"
        "try:\n    main(['doctor'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'xllamacpp', 'transformers', 'sentence_transformers', 'litellm'}\n"
        "print('loaded:', *(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    "what",
    ["python", "core packages", "extra embedded", "cores", "nodes and rubrics", "verifiers"],
)
def test_it_looks_at_everything_a_demo_needs(sound: str, what: str) -> None:
    assert f"ok        {what}" in sound


def test_each_graph_is_built(sound: str) -> None:
    assert "ok        graph single_turn_qa" in sound


def test_the_judges_agreement_card_is_printed(sound: str) -> None:
    assert "judge likeness" in sound
    assert "Agreement of judge likeness" in sound


def test_the_bundled_weights_are_found_and_whole(sound: str) -> None:
    assert "ok        weights SmolLM2" in sound
    assert "ok        weights MiniLM" in sound


def test_it_opens_no_model(sound: str) -> None:
    assert sound.splitlines()[-1].strip() == "loaded:"


def test_what_is_wanted_only_by_some_fails_nothing(sound: str) -> None:
    for line in sound.splitlines():
        if line.startswith("missing   extra hosted"):
            assert "if wanted: pip install 'dataforge-dag[hosted]'" in sound
    assert "all that `dataforge demo` needs is here" in sound


def test_broken_content_is_a_fault_with_its_fix_and_exit_code_1(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["init", str(tmp_path / "mine")]).exit_code == 0
    (tmp_path / "mine" / "graphs" / "summaries.toml").write_text("nodes = []\n")
    result = CliRunner().invoke(main, ["doctor", "--library", str(tmp_path / "mine")])
    assert result.exit_code == 1
    assert "broken    graph summaries" in result.output
    assert "-> dataforge check summaries" in result.output
    assert "to put right before `dataforge demo`" in result.output
    (tmp_path / "mine" / "nodes" / "pair.py").write_text("def broken(:\n")
    result = CliRunner().invoke(main, ["doctor", "--library", str(tmp_path / "mine")])
    assert "broken    nodes and rubrics" in result.output
    assert "pair.py:1: does not load: SyntaxError" in result.output


def test_a_library_that_is_none_is_a_fault_too(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["doctor", "--library", str(tmp_path)])
    assert result.exit_code == 1
    assert "holds no content" in result.output


def test_a_finding_says_its_fix_by_how_much_it_matters() -> None:
    assert str(Finding("missing", "x", "gone", "get it")).splitlines()[1].strip() == "-> get it"
    wanted = Finding("missing", "x", "gone", "get it", needed=False)
    assert str(wanted).splitlines()[1].strip() == "if wanted: get it"
