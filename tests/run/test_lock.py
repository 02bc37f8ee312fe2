"""A run directory has one writer, by the kernel's word and not by a file's being there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataforge.errors import RunError, RunLocked
from dataforge.run.lock import hold


def test_a_second_writer_is_refused_naming_the_first(tmp_path: Path) -> None:
    says = f"process {os.getpid()} is writing this run"
    with hold(tmp_path / "run"), pytest.raises(RunLocked, match=says), hold(tmp_path / "run"):
        pass


HOLDER = """
import sys
from pathlib import Path
from dataforge.run.lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_refused_and_a_kill_lets_go(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "run"],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        says = f"process {holder.pid} is writing this run"
        with pytest.raises(RunLocked, match=says), hold(tmp_path / "run"):
            pass
        holder.kill()
    with hold(tmp_path / "run"):
        pass


def test_a_lock_that_was_let_go_can_be_taken(tmp_path: Path) -> None:
    for _ in range(2):
        with hold(tmp_path / "run"):
            pass


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    says = r"cannot be used as a run directory.*--out"
    with pytest.raises(RunError, match=says), hold(tmp_path / "file" / "run"):
        pass


def test_a_full_disk_is_said_and_the_lock_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    says = r"cannot be locked for writing \(No space left on device\); make room"
    with monkeypatch.context() as patched:
        patched.setattr("dataforge.run.lock.os.pwrite", full)
        with pytest.raises(RunError, match=says), hold(tmp_path / "run"):
            pass
    with hold(tmp_path / "run"):
        pass
