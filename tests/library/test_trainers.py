"""Trainers are files found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import LibraryError
from dataforge.library.root import Library, find_library
from dataforge.library.trainers import load_trainer


def test_the_upper_library_wins(tmp_path: Path) -> None:
    layers = None
    for name in ("lower", "upper"):
        (tmp_path / name / "trainers").mkdir(parents=True)
        path = tmp_path / name / "trainers" / "mine.py"
        path.write_text(f"def train(training, report):\n    return {name!r}\n")
        layers = Library(name, tmp_path / name, layers)
    assert layers is not None
    assert load_trainer("mine", layers).__module__ == "dataforge_library.upper.trainers.mine"


def test_a_file_without_a_train_function_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trainers").mkdir()
    (tmp_path / "trainers" / "mine.py").write_text("train = 3\n")
    with pytest.raises(LibraryError, match=r"defines no function `train\(training, report\)`"):
        load_trainer("mine", Library("mine", tmp_path))


def test_the_standard_library_has_the_supervised_trainer() -> None:
    assert callable(load_trainer("sft", find_library()))
