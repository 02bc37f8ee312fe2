"""A copy of the project to follow a page in, as a reader would: same files, same commands.

`dataforge` and `python` are this interpreter over the copy, so that the copy's own engine runs.
With `rehearsed`, what graphs call `embedded` is a script and their judge passes everything: what is
tested is then that the commands do what the page says, and not how a model writes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import CHECKOUT, Fence

__all__ = ["Checkout", "shown"]

_PARTS = ("dataforge", "nodes", "graphs", "judges", "seeds", "trainers", "cli.py")

_REPLIES = r'''"""Replies that keep what the standard nodes promise."""

import json
import re

WEIGHTS = "rehearsal"
STORY = "The keeper climbed the stairs at dusk and lit the lamp, and the boats came home by it. "


def reply(messages, params):
    schema = params["schema"]
    if schema is None:
        return STORY * 3
    opening = re.match(r"[^(]*\(([^|)]+)", schema["properties"]["reply"]["pattern"])[1]
    return json.dumps({"reply": f"{opening} the keeper and the lamp at dusk?"})
'''

_JUDGE = """\
from dataforge import Case, Judge, Rubric, Verdict

WEIGHTS = "nobody"


class Agreeable(Judge):
    async def judge(self, case: Case, rubric: Rubric) -> Verdict:
        return Verdict(status="pass", score=1.0)


def open_judge() -> Judge:
    return Agreeable()
"""


class Checkout:
    """A working copy and a shell in it, which remembers its directory from block to block."""

    def __init__(self, folder: Path, *, rehearsed: bool) -> None:
        self.root = folder / "checkout"
        self._at = self.root
        self._bin = folder / "bin"
        self._cache = folder / "cache"
        for part in _PARTS:
            source = CHECKOUT / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, self.root / part, ignore=ignored)
            else:
                shutil.copy(source, self.root / part)
        self._command("dataforge", f'exec "{sys.executable}" "{self.root}/cli.py" "$@"')
        self._command("python", f'exec "{sys.executable}" "$@"')
        if rehearsed:
            self._rehearse(folder / "replies.py")

    def _command(self, name: str, script: str) -> None:
        self._bin.mkdir(exist_ok=True)
        path = self._bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def _rehearse(self, replies: Path) -> None:
        replies.write_text(_REPLIES)
        (self.root / "judges" / "agreeable.py").write_text(_JUDGE)
        for graph in (*self.root.glob("graphs/*.toml"), *self.root.glob("dataforge/**/*.toml")):
            text = graph.read_text(encoding="utf-8").replace('"embedded"', f'"scripted:{replies}"')
            text = text.replace('"code:likeness"', '"code:agreeable"')
            graph.write_text(text, encoding="utf-8")

    def write(self, fence: Fence) -> None:
        """Writes the file a block names, or adds to it."""
        path = self._at / fence.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if fence.adds:
            assert path.is_file(), f"{fence}: there is no {fence.file} to add to"
            text = path.read_text(encoding="utf-8") + "\n" + fence.text.partition("\n")[2]
        else:
            assert not path.exists(), f"{fence}: {fence.file} is there already"
            text = fence.text
        path.write_text(text, encoding="utf-8")

    def run(self, script: str) -> str:
        """Runs a script as a reader's shell would and gives all it says; it must succeed."""
        left = self.root.parent / "cwd"
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f'{script}\npwd > "{left}"'],
            cwd=self._at,
            env={**os.environ, **self._environment()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert ended.returncode == 0, f"exit code {ended.returncode}\n{script}\n{ended.stdout}"
        self._at = Path(left.read_text(encoding="utf-8").strip())
        return ended.stdout

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self._cache),
            "COLUMNS": "100",
            "PYTHONPATH": "",
        }


def shown(expected: str, said: str) -> str:
    """The first line of `expected` that `said` lacks, in order; empty when all are there.

    `…` stands for anything within a line.
    """
    lines = iter(said.splitlines())
    for line in expected.splitlines():
        wanted = re.compile(".*".join(map(re.escape, line.rstrip().split("…"))))
        if not any(wanted.fullmatch(each.rstrip()) for each in lines):
            return line
    return ""
