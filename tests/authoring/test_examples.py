"""The examples run, and mypy and pyright pass them in their strict modes without any plugin.

That a checker passes says little unless it also fails: each mistake must be found on its line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dataforge.plan.shape import Shape
from tests.authoring import examples

FILE = Path(__file__).with_name("examples.py")
ROOT = FILE.parents[2]

MISTAKES = (
    ('return Text(text=seen.passage.upper(), form="ode")', "return seen"),
    ('return Text(text=seen.passage.upper(), form="ode")', 'return Text(text=1, form="ode")'),
    ('writer.chat([Message("user", f"{tone}', 'writer.ask([Message("user", f"{tone}'),
    ("max(least, len(seen.text", "max(least, len(seen.txt"),
    ('told: Text = await shout(Passage(passage="some twenty letters and more"))',
     'told: Counted = await shout(Passage(passage="some twenty letters and more"))'),
    ("counted: Counted = await count(told, least=2)",
     'counted: Counted = await count(Counted(words=1))'),
    ("def counting(form: Form) -> Node[Text, Counted]:",
     "def counting(form: Form) -> Node[Counted, Text]:"),
    ('@node(attempts=3, tags=["verse"])', '@node(attempts="three", tags=["verse"])'),
)  # fmt: skip
"""What is right, and a mistake in its place."""


async def test_the_examples_run() -> None:
    assert await examples.used() == 5
    assert [made.name for made in examples.retold] == ["retell/haiku", "retell/ode"]
    assert examples.graph.count_walks() == 2
    assert examples.counts["ode"].preconditions["form"] == Shape(values=frozenset({"ode"}))


def _mypy(file: Path, folder: Path) -> set[int]:
    """The lines of `file` that mypy finds fault with."""
    config = folder / "mypy.ini"
    config.write_text(
        f"[mypy]\nstrict = True\nmypy_path = {ROOT}\nnamespace_packages = True\n"
        "explicit_package_bases = True\nfollow_imports = silent\ncache_dir = .cache\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", config.name, file.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert bool(lines) is bool(done.returncode), done.stdout
    return {int(line[1]) for line in lines}


def _pyright(file: Path, folder: Path) -> set[int]:
    """The lines of `file` that pyright finds fault with."""
    settings = {"typeCheckingMode": "strict", "include": [file.name], "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


CHECKERS = [
    pytest.param(_mypy, id="mypy"),
    pytest.param(
        _pyright,
        id="pyright",
        marks=pytest.mark.skipif(find_spec("basedpyright") is None, reason="no basedpyright here"),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKERS)
def test_the_examples_pass_and_every_mistake_is_found(check: object, tmp_path: Path) -> None:
    assert callable(check)
    text = FILE.read_text()
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert check(file, tmp_path) == set()
    for number, (right, wrong) in enumerate(MISTAKES):
        assert text.count(right) == 1
        # A name of its own: a checker's cache may take two texts of one size for the same.
        file = tmp_path / f"wrong{number}.py"
        file.write_text(text.replace(right, wrong))
        line = text[: text.index(right)].count("\n") + 1
        assert check(file, tmp_path) & set(range(line, line + 8)), wrong
