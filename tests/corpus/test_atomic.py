"""A file is replaced in one step or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dataforge.corpus.atomic import replace_file
from dataforge.errors import RunError


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def write(beside: Path) -> None:
        beside.write_text("new")
        assert path.read_text() == "old"

    replace_file(path, write)
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RunError),
        (ValueError("a bug"), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_whatever_goes_wrong_the_old_file_is_kept_and_nothing_left_beside_it(
    tmp_path: Path, failure: BaseException, raised: type[BaseException]
) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def write(beside: Path) -> None:
        beside.write_text("half")
        raise failure

    with pytest.raises(raised):
        replace_file(path, write)
    assert [each.name for each in tmp_path.iterdir()] == ["report.md"]
    assert path.read_text() == "old"
