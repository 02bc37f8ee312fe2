"""Workers join, leave and die while a run goes on: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.commands.echo_server import EchoServer
from tests.commands.small import dataforge, make_library

SEEDS = 300


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(library: Path, out: Path, model: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dataforge", "run", "small", "--library", str(library)]
    models = [f"--model={role}={model}" for role in ("writer", "answerer")]
    return subprocess.Popen(
        [*command, "--out", str(out), *models],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=library,
    )


def narrow(server: EchoServer) -> str:
    """Its spec, with so few calls at once that a run outlasts the looks at the file."""
    return f"{server.url}?limit=4"


def wait_for(process: subprocess.Popen[str], holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline


def journalled(run: Path) -> int:
    path = run / "calls.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def ended(process: subprocess.Popen[str]) -> str:
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    return output


def asked_once(run: Path) -> int:
    """How many calls the journal holds, each of which it holds once."""
    lines = [json.loads(line) for line in (run / "calls.jsonl").read_bytes().splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    return sum(line["kind"] == "chat" for line in lines)


def tables(run: Path) -> tuple[bytes, bytes]:
    return (run / "corpus.parquet").read_bytes(), (run / "calls.parquet").read_bytes()


@pytest.mark.slow
def test_one_of_three_is_killed_under_load_and_one_joins(tmp_path: Path, stack: ExitStack) -> None:
    library = make_library(tmp_path / "lib", SEEDS)
    servers = [stack.enter_context(EchoServer(tmp_path, 0.05)) for _ in range(4)]
    file = tmp_path / "workers.txt"
    for server in servers[:3]:
        assert dataforge("workers", "add", narrow(server), "--file", file).exit_code == 0
    run = tmp_path / "run"
    process = start(library, run, f"workers:{file}")
    wait_for(process, lambda: journalled(run) > 60)
    servers[0].kill()
    wait_for(process, lambda: journalled(run) > 160)
    added = dataforge("workers", "add", narrow(servers[3]), "--file", file)
    assert added.exit_code == 0, added.output
    removed = dataforge("workers", "remove", servers[1].url.partition("#")[0], "--file", file)
    assert removed.exit_code == 0, removed.output
    output = ended(process)
    assert f"a worker joins: {narrow(servers[3])}" in output
    assert f"a worker leaves: {narrow(servers[1])}" in output
    report = json.loads((run / "report.json").read_text())
    assert report["failed"] == report["pending"] == 0
    assert report["accepted"] + report["rejected"] == SEEDS
    calls = asked_once(run)
    served = Counter(key for server in servers for key in server.served)
    # What the dead one had sent when it died may not have arrived.
    assert calls <= served.total() <= calls + 32
    assert servers[2].served and servers[3].served

    whole = tmp_path / "whole"
    ended(start(library, whole, servers[2].url))
    assert tables(run) == tables(whole)


@pytest.mark.slow
def test_a_server_that_restarts_costs_no_walk(tmp_path: Path, stack: ExitStack) -> None:
    library = make_library(tmp_path / "lib", SEEDS)
    server = stack.enter_context(EchoServer(tmp_path))
    run = tmp_path / "run"
    process = start(library, run, server.url)
    wait_for(process, lambda: journalled(run) > 60)
    server.kill()
    server.start()
    ended(process)
    report = json.loads((run / "report.json").read_text())
    assert report["failed"] == report["pending"] == 0
    assert asked_once(run) == report["new"]


def test_the_command_adds_lists_and_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = "http://a:1/v1#m", "http://b:2/v1#m"
    assert "workers.txt: 1 workers" in dataforge("workers", "add", one).output
    assert "workers.txt: 2 workers" in dataforge("workers", "add", two).output
    assert f"was there: {two}" in dataforge("workers", "add", two).output
    assert dataforge("workers", "list").output.split() == [one, two]
    assert dataforge("workers", "remove", "http://a:1/v1").exit_code == 0
    gone = dataforge("workers", "remove", "http://a:1/v1")
    assert (gone.exit_code, gone.stderr) == (
        2,
        f"error: workers.txt: there is no worker http://a:1/v1; there are {two}\n",
    )
    other = dataforge("workers", "add", "http://c:3/v1#other")
    assert (other.exit_code, other.stderr.count("\n")) == (2, 1)
    lost = dataforge("workers", "add", one, "--file", "no/such/w.txt")
    assert "there is no folder no/such; make it first" in lost.stderr


def test_a_role_may_be_given_several_endpoints_of_one_model_only(tmp_path: Path) -> None:
    library = make_library(tmp_path / "lib")
    one, two = "writer=http://a:1/v1#m", "writer=http://b:2/v1#other"
    done = dataforge("run", "small", "--library", library, "--model", one, "--model", two)
    assert done.exit_code != 0
    assert "one role has one model" in done.stderr
    done = dataforge(
        "run", "small", "--library", library, "--model", one, "--model", "writer=embedded"
    )
    assert "only endpoints of one model can serve a role together" in done.stderr
