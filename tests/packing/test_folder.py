"""Folders appear whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import InputError
from dataforge.packing.folder import check_replaceable, replace_folder


def test_a_folder_of_ours_is_replaced_whole(tmp_path: Path) -> None:
    def first(folder: Path) -> None:
        (folder / "marker").write_text("1")
        (folder / "only-once").write_text("1")

    def second(folder: Path) -> None:
        (folder / "marker").write_text("2")

    replace_folder(tmp_path / "a" / "b", "marker", first)
    replace_folder(tmp_path / "a" / "b", "marker", second)
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["marker"]
    assert (tmp_path / "a" / "b" / "marker").read_text() == "2"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    def fine(folder: Path) -> None:
        (folder / "marker").write_text("1")

    def failing(folder: Path) -> None:
        (folder / "half").write_text("")
        raise RuntimeError("the disk is full")

    replace_folder(tmp_path / "out", "marker", fine)
    with pytest.raises(RuntimeError, match="disk is full"):
        replace_folder(tmp_path / "out", "marker", failing)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["marker", "out"]


def test_what_somebody_else_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    with pytest.raises(InputError, match="was not made by this command"):
        replace_folder(tmp_path, "marker", lambda folder: None)
    assert (tmp_path / "thesis.tex").read_text() == "ten years of work"


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    replace_folder(tmp_path / "out", "marker", lambda folder: (folder / "marker").touch())
    assert (tmp_path / "out" / "marker").is_file()


@pytest.mark.parametrize("name", ["file/out", "file/further/out", "/proc/out", "a" * 300])
def test_a_place_where_no_folder_can_be_is_told_before_any_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="no folder can be made there"):
        check_replaceable(tmp_path / name, "marker")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
