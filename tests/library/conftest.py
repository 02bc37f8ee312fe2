"""A library written for one test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dataforge.library.root import Library
from tests.library.scene import Write


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files, path -> text, as a library that is the working directory and stands alone."""
    monkeypatch.chdir(tmp_path)

    def written(files: Mapping[str, str]) -> Library:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Library("mine", tmp_path)

    return written
