"""The command line as a whole: its helps, its errors, and what it does not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dataforge.commands.app import COMMANDS, LazyCommands, main
from dataforge.errors import InputError, RunError
from tests.commands.small import dataforge, make_library

HEAVY = (
    *("torch", "transformers", "polars", "aiohttp", "litellm", "xllamacpp"),
    *("sentence_transformers", "numba", "rich", "networkx", "numpy", "datasketch", "pydantic"),
)
ROOT = Path(__file__).parents[2]


def raising(error: BaseException) -> LazyCommands:
    """A command line that comes to grief."""

    def callback() -> None:
        raise error

    return LazyCommands("x", callback=callback, invoke_without_command=True)


def test_without_arguments_it_says_where_to_begin() -> None:
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0
    for first in ("dataforge doctor", "dataforge demo", "dataforge init my_lib"):
        assert first in result.output


def test_help_lists_every_command_in_the_order_of_a_first_visit() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    lines = result.output.partition("Commands:")[2].splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_explains_it_by_an_example(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f"dataforge {name}" in result.output.partition("Example")[2]
    assert len(result.output) > 300


def test_the_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from dataforge.commands.app import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print('loaded:', *({set(HEAVY)} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_the_front_door_of_a_checkout_is_the_same_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "cli.py", "check", "no_such_graph"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is no graphs/no_such_graph in standard")
    assert "Traceback" not in done.stderr


def test_a_command_that_is_none_is_wrong_usage_with_the_nearest_name() -> None:
    result = CliRunner().invoke(main, ["chek"])
    assert result.exit_code == 2
    assert "There is no command 'chek'. Did you mean 'check'?" in result.output
    assert "There are: demo, run," in CliRunner().invoke(main, ["zzz"]).output


@pytest.mark.parametrize(("error", "code"), [(RunError("no"), 1), (InputError("no"), 2)])
def test_an_error_of_the_users_is_one_line_and_its_exit_code(
    error: click.ClickException, code: int
) -> None:
    result = CliRunner().invoke(raising(error), [])
    assert (result.exit_code, result.output) == (code, "error: no\n")


def test_an_interrupt_is_no_traceback() -> None:
    result = CliRunner().invoke(raising(KeyboardInterrupt()), [])
    assert (result.exit_code, result.output) == (130, "interrupted\n")


def test_a_bug_keeps_its_traceback() -> None:
    result = CliRunner().invoke(raising(ZeroDivisionError()), [])
    assert isinstance(result.exception, ZeroDivisionError)


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("dataforge")


@pytest.fixture(scope="module")
def run_done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, to export and pack; its library stands beside it."""
    library = make_library(tmp_path_factory.mktemp("done") / "lib", seeds=2)
    run = library.parent / "run"
    done = dataforge("run", "small", "--library", library, "--walks", "2", "--out", run)
    assert done.exit_code == 0, done.output
    return run


@pytest.mark.parametrize("place", ["file/x", "/proc/x", "long", "/proc/x/y"])
@pytest.mark.parametrize(
    "command",
    [
        ("init", "{}"),
        ("draw", "single_turn_qa", "--out", "{}.html"),
        ("draw", "single_turn_qa", "--out", "{}/x.svg"),
        ("plan", "--have", "passage", "--want", "answer", "--pddl", "{}"),
        ("export", "RUN", "--to", "{}.jsonl"),
        ("export", "RUN", "--to", "{}.parquet"),
        ("pack", "RUN", "--out", "{}", "--tokenizer", "embedded"),
        ("run", "small", "--library", "LIB", "--out", "{}"),
        ("show", "--run", "{}"),
        ("check", "--library", "{}"),
    ],
)
def test_a_place_that_the_system_refuses_is_one_line_and_no_traceback(
    tmp_path: Path, run_done: Path, command: tuple[str, ...], place: str
) -> None:
    (tmp_path / "file").write_text("")
    bad = "a" * 300 if place == "long" else place
    path = str(tmp_path / bad)
    named = {"RUN": str(run_done), "LIB": str(run_done.parent / "lib")}
    result = dataforge(*(named.get(each, each.replace("{}", path)) for each in command))
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert Path(bad).parts[-1][:20] in last
    assert not list(tmp_path.glob(".*.part"))


def test_an_error_of_the_system_that_names_no_file_stays_a_bug() -> None:
    result = CliRunner().invoke(raising(OSError(5, "Input/output error")), ["demo"])
    assert isinstance(result.exception, OSError)
