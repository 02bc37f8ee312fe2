"""Where libraries are looked for, and which comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import LibraryError
from dataforge.library.root import STANDARD, find_library


def library(path: Path) -> Path:
    (path / "nodes").mkdir(parents=True)
    (path / "nodes" / "x.toml").write_text("")
    return path


def names(path: Path | None = None) -> list[str]:
    return [layer.name for layer in find_library(path).layers()]


def test_the_standard_library_lies_at_the_bottom_of_every_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert names() == [STANDARD]
    standard = find_library().root
    assert (standard / "graphs").is_dir() and (standard / "nodes").is_dir()


def test_the_working_directory_is_searched_first_if_it_is_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library(tmp_path / "mine"))
    assert names() == ["mine", STANDARD]


def test_a_library_that_was_asked_for_takes_the_place_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library(tmp_path / "here"))
    assert names(library(tmp_path / "asked")) == ["asked", STANDARD]


def test_the_standard_library_is_not_put_above_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    standard = find_library().layers()[-1].root
    monkeypatch.chdir(standard)
    assert names() == names(standard) == names(Path()) == [STANDARD]


def test_a_folder_that_only_happens_to_hold_nodes_is_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "data.csv").touch()
    monkeypatch.chdir(tmp_path)
    assert names() == [STANDARD]


def test_what_was_asked_for_and_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LibraryError) as caught:
        find_library(tmp_path / "gone")
    assert f"--library {tmp_path / 'gone'}: is not a directory" in str(caught.value)
    with pytest.raises(LibraryError) as caught:
        find_library(tmp_path)
    assert f"{tmp_path}: holds no content" in str(caught.value)
    assert f"`dataforge init {tmp_path}` makes one" in str(caught.value)


def install(site: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Offers `module` as the library `poems`, as an installed distribution does."""
    info = site / "poems-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poems\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dataforge.libraries]\npoems = {module}\n")
    monkeypatch.syspath_prepend(str(site))


def test_an_installed_library_is_found_without_importing_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = library(tmp_path / "site" / "poems_library")
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    install(tmp_path / "site", monkeypatch, "poems_library")
    monkeypatch.chdir(library(tmp_path / "mine"))
    assert names() == ["mine", "poems", STANDARD]
    assert find_library().layers()[1].root == package


def test_an_installed_library_that_points_nowhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch, "no_such_package")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LibraryError, match="the installed library 'poems' points at 'no_such_pack"):
        find_library()


def test_files_are_found_by_name_in_the_uppermost_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library(tmp_path / "mine"))
    found = find_library()
    (tmp_path / "mine" / "graphs").mkdir()
    mine = tmp_path / "mine" / "graphs" / "single_turn_qa.toml"
    assert found.find("graphs", "single_turn_qa", ".toml").is_relative_to(found.layers()[-1].root)
    mine.touch()
    assert found.find("graphs", "single_turn_qa", ".toml") == mine
    assert found.find("graphs", "single_turn_qa.toml", ".toml") == mine
