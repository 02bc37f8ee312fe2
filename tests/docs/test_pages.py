"""Pages hold together: links lead somewhere, blocks can be read, tables say what the code has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import click
import pytest

import dataforge
from dataforge.commands.app import COMMANDS, main
from dataforge.corpus.store import CALLS_SCHEMA, SAMPLES_SCHEMA
from dataforge.evals.card import load_card
from dataforge.library import conditions, graphs, judges
from dataforge.library.graphs import load_graph
from dataforge.library.nodes import load_nodes
from dataforge.library.prompt_table import KEYS
from dataforge.library.root import find_library
from dataforge.models import specs
from dataforge.packing import shard
from tests.docs.pages import CHECKOUT, PAGES, Fence, anchors, fences, links, table

REFERENCE = CHECKOUT / "docs" / "reference.md"
_NODES = [fence for page in PAGES for fence in fences(page) if fence.file.startswith("nodes/")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_every_link_leads_to_a_page_and_a_heading_that_exist(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {target.name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_every_page_but_the_first_is_linked_to(page: Path) -> None:
    linked = {target for each in PAGES for target, _ in links(each)}
    assert page in linked or page.name == "README.md"


@pytest.mark.parametrize(
    "fence", [f for page in PAGES for f in fences(page, "toml", "python")], ids=str
)
def test_every_block_of_code_can_be_read(fence: Fence) -> None:
    if fence.language == "toml":
        assert tomllib.loads(fence.text)
    else:
        compile(fence.text, str(fence), "exec")


@pytest.mark.parametrize("fence", _NODES, ids=str)
def test_every_node_that_a_page_shows_loads_and_joins_its_graph(
    fence: Fence, tmp_path: Path
) -> None:
    path = tmp_path / fence.file
    path.parent.mkdir(parents=True)
    text = fence.text
    if fence.adds:
        text = (CHECKOUT / fence.file).read_text(encoding="utf-8") + text
    path.write_text(text, encoding="utf-8")
    library = find_library(tmp_path)
    new = load_nodes(library).keys() - load_nodes(find_library()).keys()
    assert new
    for name in new:
        if name.startswith("transform/"):
            nodes = {node.name for node in load_graph("single_turn_qa", library).graph.nodes}
            assert name in nodes


TABLES: Mapping[tuple[str, int], Iterable[str]] = {
    ("Conditions", 1): conditions._KEYS,
    ("Prompt nodes", 0): KEYS,
    ("Rubrics", 0): judges._KEYS,
    ("Graphs", 1): graphs._LOOP_KEYS,
    ("Python", 0): dataforge.__all__,
    ("Models", 1): {option for options in specs._OPTIONS.values() for option in options},
    ("Run directory", 1): SAMPLES_SCHEMA,
    ("Run directory", 2): CALLS_SCHEMA,
    ("Shards", 0): shard._SCHEMA,
}
"""Section of the reference, which of its tables -> all that it must list."""


@pytest.mark.parametrize(("section", "number"), TABLES)
def test_a_table_of_the_reference_lists_all_there_is_and_nothing_else(
    section: str, number: int
) -> None:
    assert sorted(table(REFERENCE, section, number)) == sorted(TABLES[section, number])


def test_the_figures_of_the_embedded_judge_are_those_of_its_card() -> None:
    card = load_card(CHECKOUT / "judges" / "likeness.py")
    assert card is not None
    rows = [("good", card.test.good, "", card.test.good_accepted)]
    for fault, found in card.test.against.items():
        rows.append((fault, found.n, f"{found.auc:.3f} ", found.accepted))
    text = (CHECKOUT / "docs" / "explanation.md").read_text(encoding="utf-8")
    for name, count, auc, accepted in rows:
        assert f"| {name} | {count} | {auc}| {accepted:.0%} |" in text


def test_the_reference_lists_every_key_of_a_graph() -> None:
    listed = {re.sub(r"[\[\]]|\..*", "", each) for each in table(REFERENCE, "Graphs")}
    assert listed == {*graphs._KEYS}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_lists_every_option_of_every_command(name: str) -> None:
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None
    arguments = [
        f" {each.make_metavar(context)}"
        for each in command.params
        if isinstance(each, click.Argument)
    ]
    options = {
        option
        for each in command.params
        if isinstance(each, click.Option)
        for option in (*each.opts, *each.secondary_opts)
    } - {"--library", "--json"}
    heading = f"dataforge {name}{''.join(arguments)}"
    assert f"\n### {heading}\n" in REFERENCE.read_text(encoding="utf-8")
    listed = {each.partition(" ")[0] for each in table(REFERENCE, heading)} if options else set()
    assert listed == options
