"""What a run costs is asked for, bounded, shown and logged from the command line."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.commands.echo_server import EchoServer
from tests.commands.small import asked, dataforge, make_library


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_library(tmp_path / "lib")


def test_models_in_this_process_cost_nothing_and_are_known_to(library: Path) -> None:
    done = dataforge("run", "small", "--library", library, "--max-usd", "1")
    assert done.exit_code == 0, done.output
    assert "$0.0000" in done.output
    assert "unknown" not in done.output


def test_money_is_counted_bounded_and_shown(library: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["echo"]\nin = 1000\nout = 1000\n')
    with ExitStack() as stack:
        server = stack.enter_context(EchoServer(tmp_path, 0.0))
        models = [f"--model={role}={server.url}" for role in ("writer", "answerer")]
        run: list[str | Path] = ["run", "small", "--library", library, *models]
        refused = dataforge(*run, "--max-usd", "0.05")
        assert refused.exit_code == 2
        assert "'echo', which plays" in refused.stderr
        assert server.served == []
        bound = dataforge(*run, "--prices", prices, "--max-usd", "0.05", "--concurrency", "1")
        assert "spent of the $0.0500 allowed" in bound.output
        done = dataforge(*run, "--prices", prices)
        assert done.exit_code == 0, done.output
        assert f"${8e-3 * len(server.served):,.4f}" in done.output
        shown = dataforge("show", "--run", "runs/small")
        assert f"${8e-3 * len(server.served):,.4f}" in shown.output
        assert "came to steps/answer" in shown.output
        usage = json.loads(dataforge("show", "--run", "runs/small", "--json").output)
        assert sum(each["usd"] for each in usage["report"]["usage"]) == pytest.approx(
            8e-3 * len(server.served)
        )
        unpriced = dataforge(*run, "--accept-changes")
        assert "unknown" in unpriced.output


def test_a_few_walks_more_at_a_time(library: Path) -> None:
    for made in (3, 6):
        done = dataforge("run", "small", "--library", library, "--max-walks", "3")
        assert f"3 walks made of the 3 allowed; {8 - made} walks to go" in done.stderr
    done = dataforge("run", "small", "--library", library, "--max-walks", "3")
    assert done.exit_code == 0
    assert "to go" not in done.output


def test_events_are_logged_on_request_and_hold_no_text(library: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    for _ in range(2):
        dataforge("run", "small", "--library", library, "--log", log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds.count("run began") == 2
    assert kinds.count("walk ended") == 8
    assert kinds.count("call ended") == asked(library)
    assert all(line["at"].endswith("+00:00") for line in lines)
    calls = [line for line in lines if line["event"] == "call ended"]
    walks = {line["walk"] for line in lines if line["event"] == "walk ended"}
    assert {call["walk"] for call in calls} <= walks
    assert {call["usd"] for call in calls} == {0.0}
    assert "passage number" not in log.read_text()
    assert "reply" not in {key for line in lines for key in line}
    lost = dataforge("run", "small", "--library", library, "--log", "no/such/file")
    assert (lost.exit_code, lost.stderr.splitlines()[-1]) == (
        2,
        "error: --log no/such/file: cannot be written (No such file or directory)",
    )
