"""Every command that a page shows is run as a reader would run it, in a copy of the checkout.

A page is followed from top to bottom in one shell: files it says to write are written, commands
are run, and a text shown below them in the same section must be in their output. Commands that
cannot run here are listed with the reason, and are at least parsed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from dataforge.commands.app import COMMANDS, main
from tests.docs.checkout import Checkout, shown
from tests.docs.pages import CHECKOUT, PAGES, Fence, code_spans, fences

_NETWORK = "needs a server, a key or the network"
_ENVIRONMENT = "the tests run in the environment that it makes"
_MAKE = "runs for minutes, or runs these very tests"
_TIMED = "times things, for most of a minute"
_FILES = "needs a model that the reader has"

NOT_RUN: Mapping[str, str] = {
    "python benchmarks/engine.py --quick": _TIMED,
    "python benchmarks/graph.py --quick": _TIMED,
    "python benchmarks/packing.py --quick": _TIMED,
    "make demo": _MAKE,
    "make test": _MAKE,
    "make demo INPUT=mine.jsonl": _MAKE,
    "make setup": _ENVIRONMENT,
    ". .venv/bin/activate": _ENVIRONMENT,
    "pip install -e '.[hosted]'": _NETWORK,
    "export OPENAI_API_KEY=…": _NETWORK,
    "dataforge run single_turn_qa --model answerer=openai/gpt-4o-mini": _NETWORK,
    "dataforge run single_turn_qa --model answerer=openai/gpt-4o-mini --out runs/hosted": _NETWORK,
    "pip install --no-deps --require-hashes -r requirements-hosted.txt": _NETWORK,
    "export ANTHROPIC_API_KEY=…": _NETWORK,
    "dataforge run single_turn_qa --model 'answerer=anthropic:claude-opus-5?sampling=off' --out "
    "runs/claude": _NETWORK,
    "dataforge run single_turn_qa --model "
    "'writer=https://example.org/v1#big?key_file=~/.keys/example' --out runs/keyed": _NETWORK,
    "dataforge run single_turn_qa --model 'answerer=http://localhost:8000/v1#qwen3-8b' --out "
    "runs/local": _NETWORK,
    "dataforge run single_turn_qa --model 'writer=https://example.org/v1#big?key_env=MY_KEY&limit=64'"
    " --out runs/keyed": _NETWORK,
    "dataforge run single_turn_qa --model judge=openai/gpt-4o-mini --out runs/strict": _NETWORK,
    "dataforge run single_turn_qa --model 'answerer=http://a:8000/v1#qwen3-8b' --model "
    "'answerer=http://b:8000/v1#qwen3-8b?share=2' --out runs/two": _NETWORK,
    "dataforge run single_turn_qa --model answerer=workers:workers.txt --out "
    "runs/elastic": _NETWORK,
    "pip install -e '.[ray]'": _NETWORK,
    "dataforge run single_turn_qa --model judge=embedded --allow-shared-weights --out runs/own": (
        "takes minutes, and such a judge may pass nothing"
    ),
    "dataforge run single_turn_qa --model 'answerer=gguf:/path/model.gguf?context=8192' --out "
    "runs/gguf": _FILES,
    "dataforge pack runs/single_turn_qa --tokenizer ~/models/qwen3-0.6b --capacity 16384": _FILES,
    "dataforge train runs/single_turn_qa --model ~/models/qwen3-0.6b --batch-rows 8 --lr 2e-5": (
        _FILES
    ),
}
"""Command -> why it is only parsed."""

REAL = ("docs/tutorial.md", "docs/how-to/models.md")
"""Pages followed with the models they name."""
SLOW = (
    *REAL[:1],
    "docs/how-to/running.md",
    "docs/how-to/scaling.md",
    "docs/how-to/using-the-corpus.md",
)
"""Pages that take more than some seconds: a model writes or is trained, or many commands."""


def _name(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


def _pages() -> list[object]:
    return [
        pytest.param(page, id=_name(page), marks=[pytest.mark.slow] if _name(page) in SLOW else [])
        for page in PAGES
        if fences(page, "sh")
    ]


def _script(fence: Fence) -> str:
    lines = []
    for command in fence.commands:
        said, _, comment = command.partition("  # ")
        said = said.rstrip()
        if said in NOT_RUN:
            continue
        if code := re.fullmatch(r"exit code (\d+)", comment):
            said = f"status=0; {said} || status=$?; test $status -eq {code[1]}"
        lines.append(said)
    return "\n".join(lines)


@pytest.mark.parametrize("page", _pages())
def test_a_page_can_be_followed_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, rehearsed=_name(page) not in REAL)
    said = ran = ""
    for fence in fences(page):
        if fence.file:
            checkout.write(fence)
        elif fence.language == "sh":
            said, ran = checkout.run(_script(fence)), fence.section
        elif fence.language == "text" and fence.section == ran:
            assert not (line := shown(fence.text, said)), f"{fence}: not said: {line}\n{said}"


def test_every_exception_is_still_on_a_page() -> None:
    on_pages = {
        command.partition("  # ")[0].rstrip()
        for page in PAGES
        for fence in fences(page, "sh")
        for command in fence.commands
    }
    assert not NOT_RUN.keys() - on_pages


@pytest.mark.parametrize("command", [each for each in NOT_RUN if each.startswith("dataforge ")])
def test_a_command_that_is_not_run_can_be_parsed(command: str) -> None:
    _, name, *arguments = shlex.split(command)
    context = click.Context(main)
    found = main.get_command(context, name)
    assert found is not None
    with found.make_context(name, arguments, parent=context):
        pass


@pytest.mark.parametrize("command", [each for each in NOT_RUN if each.startswith("make ")])
def test_a_make_command_names_a_target_and_variables_that_exist(command: str) -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    _, target, *settings = command.split()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for setting in settings:
        assert re.search(rf"^{setting.partition('=')[0]}\s*\?=", makefile, re.MULTILINE)


def test_every_option_that_a_text_names_exists() -> None:
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in COMMANDS]
    inner = [
        each
        for group in commands
        if isinstance(group, click.Group)
        for each in group.commands.values()
    ]
    options = {
        option
        for command in (*commands, *inner)
        if command is not None
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "--no-deps", "--quick", "--head"}
    for page in PAGES:
        for span in code_spans(page):
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span):
                assert option in options, f"{_name(page)}: {span}"


def test_every_command_that_a_text_names_exists() -> None:
    for page in PAGES:
        for span in code_spans(page):
            if (found := re.match(r"dataforge ([a-z]+)", span)) and not found[0].endswith("…"):
                assert found[1] in COMMANDS, f"{_name(page)}: {span}"
