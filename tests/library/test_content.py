"""Every content file of the standard library, and of the one that `init` writes, keeps the laws."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dataforge
from dataforge.library.catalogue import Catalogue
from dataforge.library.graphs import graph_names, load_graph
from dataforge.library.judges import layer_judges
from dataforge.library.modules import load_module
from dataforge.library.nodes import file_nodes
from dataforge.library.root import FOLDERS, Library, find_library
from dataforge.library.seeds import read_seeds

STANDARD = find_library().layers()[-1]
NEW = Library("new", Path(dataforge.__file__).parent / "commands" / "new_library")
FILES = [
    (library, path)
    for library in (STANDARD, NEW)
    for folder in FOLDERS
    for path in library.files(folder, ".py", ".toml", ".jsonl")
]
NAMED = pytest.mark.parametrize(
    ("library", "path"),
    FILES,
    ids=[f"{library.name}:{path.relative_to(library.root)}" for library, path in FILES],
)


@NAMED
def test_a_content_file_loads(library: Library, path: Path) -> None:
    folder = path.relative_to(library.root).parts[0]
    if path.suffix == ".py":
        assert load_module(library, path).__doc__, "says in a docstring what it is"
    if folder == "nodes":
        assert list(file_nodes(library, path))
    elif folder == "judges" and path.suffix == ".toml":
        assert layer_judges(library)
    elif folder == "seeds":
        assert read_seeds(path).seeds


@NAMED
def test_a_content_file_imports_the_engine_and_installed_packages_only(
    library: Library, path: Path
) -> None:
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import reaches other content"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            assert top not in (*FOLDERS, "dataforge_library"), f"line {node.lineno}: {name}"


@pytest.mark.parametrize("library", [STANDARD, NEW], ids=lambda library: library.name)
def test_no_content_folder_is_a_package(library: Library) -> None:
    found = [
        str(path) for folder in FOLDERS for path in (library.root / folder).rglob("__init__.py")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("library", "name"),
    [(library, name) for library in (STANDARD, NEW) for name in graph_names(library)],
)
def test_a_graph_compiles_and_ends_in_a_conversation(library: Library, name: str) -> None:
    loaded = load_graph(name, library)
    assert loaded.graph.count_walks() > 0
    assert loaded.graph.postconditions["messages"] is not None
    assert loaded.description
    assert loaded.roles.keys() == loaded.graph.roles.keys(), "each role has a default"
    assert loaded.notices == ()


@pytest.mark.parametrize("library", [STANDARD, NEW], ids=lambda library: library.name)
def test_each_node_and_rubric_is_in_the_catalogue(library: Library) -> None:
    assert Catalogue.of(library).nodes
