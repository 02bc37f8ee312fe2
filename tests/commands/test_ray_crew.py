"""Walks on a cluster make the corpus that one process makes, also when a machine dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from tests.commands.echo_server import EchoServer
from tests.commands.small import asked, dataforge, make_library

SEEDS = 60

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Two machines of one CPU and a head that walks nothing, all of them on this one."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    made.shutdown()


def command(library: Path, out: Path, *more: str) -> list[str]:
    run = [sys.executable, "-m", "dataforge", "run", "small", "--library", str(library)]
    return [*run, "--out", str(out), *more]


def go(library: Path, out: Path, *more: str) -> str:
    done = subprocess.run(
        command(library, out, *more), capture_output=True, text=True, cwd=library, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tables(run: Path) -> tuple[bytes, bytes]:
    return (run / "corpus.parquet").read_bytes(), (run / "calls.parquet").read_bytes()


def finished(run: Path) -> int:
    """How many calls are on disk, each of them once."""
    lines = [
        json.loads(line)
        for path in run.rglob("calls.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    assert len({line["key"] for line in lines}) == len(lines)
    return sum(line["kind"] == "chat" for line in lines)


def test_a_cluster_makes_the_corpus_of_one_process(tmp_path: Path, cluster: object) -> None:
    from ray.cluster_utils import Cluster

    assert isinstance(cluster, Cluster)
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    library = make_library(tmp_path / "lib", SEEDS)
    go(library, tmp_path / "alone")
    alone = asked(library)
    on = ("--on", "ray", "--address", cluster.address)
    output = go(library, tmp_path / "run", *on)
    assert tables(tmp_path / "run") == tables(tmp_path / "alone")
    assert asked(library) == 2 * alone
    assert len(list((tmp_path / "run" / "parts").iterdir())) > 2
    assert f"{SEEDS}/{SEEDS} walks" in output
    reports = [json.loads((tmp_path / run / "report.json").read_text()) for run in ("run", "alone")]
    assert [[each["accepted"], each["endings"]] for each in reports[:1]] == [
        [each["accepted"], each["endings"]] for each in reports[1:]
    ]
    # The same command again finds all of it done, and asks nothing.
    assert f"{SEEDS} of {SEEDS} walks ended before" in go(library, tmp_path / "run", *on)
    assert asked(library) == 2 * alone
    # More walks later only add.
    go(library, tmp_path / "run", *on, "--per-seed", "2")
    go(library, tmp_path / "alone", "--per-seed", "2")
    assert tables(tmp_path / "run") == tables(tmp_path / "alone")
    shown = dataforge("show", "seed-3", "--run", tmp_path / "alone")
    assert shown.exit_code == 2 and "means 2 walks" in shown.output
    walk = shown.output.split("means 2 walks: ")[1].split(",")[0]
    for run in ("run", "alone"):
        assert dataforge("show", walk, "--run", tmp_path / run).exit_code == 0
    # It goes on only as it was begun.
    mixed = dataforge("run", "small", "--library", library, "--out", tmp_path / "run")
    assert mixed.exit_code == 1 and "was begun with --on ray and goes on only so" in mixed.output
    for node in nodes:
        cluster.remove_node(node)


def test_a_machine_that_is_killed_under_load_loses_and_repeats_nothing(
    tmp_path: Path, cluster: object
) -> None:
    from ray.cluster_utils import Cluster

    assert isinstance(cluster, Cluster)
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    library = make_library(tmp_path / "lib", 200)
    run = tmp_path / "run"
    with ExitStack() as stack:
        server = stack.enter_context(EchoServer(tmp_path, 0.05))
        models = [f"--model={role}={server.url}?limit=4" for role in ("writer", "answerer")]
        process = subprocess.Popen(
            command(library, run, "--on", "ray", "--address", cluster.address, *models),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=library,
        )
        deadline = time.monotonic() + 120
        while sum(path.stat().st_size for path in run.rglob("calls.jsonl")) < 60_000:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
        cluster.remove_node(nodes[0], allow_graceful=False)
        output = process.communicate(timeout=240)[0]
        assert process.returncode == 0, output
        assert "its walks go on elsewhere" in output
        calls = finished(run)
        # What the dead machine had asked and not yet written is asked again: at most its limits.
        assert calls <= len(server.served) <= calls + 8
        go(library, tmp_path / "alone", *models)
    assert tables(run) == tables(tmp_path / "alone")
    cluster.remove_node(nodes[1])


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_cluster_once_the_calls_in_flight_are_done(
    tmp_path: Path, cluster: object, sent: signal.Signals
) -> None:
    from ray.cluster_utils import Cluster

    assert isinstance(cluster, Cluster)
    node = cluster.add_node(num_cpus=2)
    library = make_library(tmp_path / "lib", SEEDS)
    run = tmp_path / "run"
    with EchoServer(tmp_path, 0.2) as server:
        models = [f"--model={role}={server.url}?limit=4" for role in ("writer", "answerer")]
        on = ("--on", "ray", "--address", cluster.address, *models)
        process = subprocess.Popen(
            command(library, run, *on), stdout=PIPE, stderr=STDOUT, text=True, cwd=library
        )
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size for path in run.rglob("calls.jsonl")):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
        process.send_signal(sent)
        output = process.communicate(timeout=120)[0]
        assert process.returncode == 130, output
        assert "walks to go" in output
        assert 0 < finished(run) == len(server.served)
        # Another number of hands goes on with the same parts.
        go(library, run, *on, "--hands", "1")
        assert finished(run) == len(server.served)
        go(library, tmp_path / "alone", *models)
    assert tables(run) == tables(tmp_path / "alone")
    cluster.remove_node(node)


def test_a_cluster_without_room_is_told_of_and_can_be_stopped(
    tmp_path: Path, cluster: object
) -> None:
    from ray.cluster_utils import Cluster

    assert isinstance(cluster, Cluster)
    library = make_library(tmp_path / "lib", 4)
    on = ("--on", "ray", "--address", cluster.address)
    process = subprocess.Popen(
        command(library, tmp_path / "run", *on), stdout=PIPE, stderr=STDOUT, text=True, cwd=library
    )
    assert process.stdout is not None
    assert any("has no room yet for a process" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    assert "4 walks to go" in process.communicate(timeout=60)[0]
    assert process.returncode == 130
    node = cluster.add_node(num_cpus=1)
    # More hands than there is room for leave the rest to those that there are.
    go(library, tmp_path / "run", *on, "--hands", "4")
    go(library, tmp_path / "alone")
    assert tables(tmp_path / "run") == tables(tmp_path / "alone")
    cluster.remove_node(node)


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    library = make_library(tmp_path / "lib")
    lost = dataforge("run", "small", "--library", library, "--hands", "2")
    assert (lost.exit_code, lost.stderr.count("\n")) == (2, 1)
    done = subprocess.run(
        command(library, tmp_path / "run", "--on", "ray", "--address", "127.0.0.1:1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "error: --on ray: no cluster at 127.0.0.1:1" in done.stderr
