"""A run killed at any instant, by a real SIGKILL of a real process, repeats no finished call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.run.scene import bytes_of, order, run

WALKS = 24

CHILD = """
import asyncio, json, os, signal, sys
from pathlib import Path
from dataclasses import replace
from tests.run.scene import Voice, echo, order, run

folder, asked, kill_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls = 0

def say(messages, params):
    global calls
    calls += 1
    with open(asked, "a") as file:
        file.write(json.dumps([messages[-1].content, params.seed]) + "\\n")
    if calls == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return echo(messages, params)

asyncio.run(run(replace(order({walks}, Voice(say)), concurrency=5), folder))
"""


def child(folder: Path, asked: Path, kill_at: int) -> subprocess.Popen[bytes]:
    code = CHILD.replace("{walks}", str(WALKS))
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(asked), str(kill_at)],
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def finished(folder: Path) -> set[tuple[str, int]]:
    """The calls that a kill left whole in the journal."""
    journal = folder / "calls.jsonl"
    whole = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    chats = [entry for line in whole if (entry := json.loads(line))["kind"] == "chat"]
    return {(each["messages"][-1]["content"], each["params"]["seed"]) for each in chats}


def made(asked: Path) -> Counter[tuple[str, int]]:
    """How often each call was made so far."""
    lines = asked.read_text().splitlines() if asked.exists() else []
    return Counter((content, seed) for content, seed in map(json.loads, lines))


class Watched:
    """Sittings of one run, each of which must ask for nothing that was finished before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run"
        self.asked = folder / "asked.jsonl"
        self.safe = 0

    def sit(self, kill_at: int, kill_size: int = 0) -> int:
        """One sitting, killed at a call or at a size of the journal; its exit status."""
        finished_before, made_before = finished(self.folder), made(self.asked)
        process = child(self.folder, self.asked, kill_at)
        if kill_size:
            kill_when_written(process, self.folder / "calls.jsonl", kill_size)
        status = process.wait(120)
        now = made(self.asked) - made_before
        assert not now.keys() & finished_before
        self.safe += len(finished_before)
        return status


def kill_when_written(process: subprocess.Popen[bytes], journal: Path, size: int) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if journal.exists() and journal.stat().st_size >= size:
            break
    process.kill()


@pytest.mark.slow
async def test_killed_at_chosen_calls_it_continues_as_if_never_broken(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    for kill_at in (1, 2, 9, 30):
        assert watched.sit(kill_at) == -signal.SIGKILL
    assert watched.sit(kill_at=0) == 0
    assert watched.safe
    await run(order(WALKS), tmp_path / "whole")
    assert bytes_of(watched.folder) == bytes_of(tmp_path / "whole")


@pytest.mark.slow
async def test_killed_from_outside_while_writing_it_continues_as_well(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    for size in (3_000, 20_000, 45_000):
        watched.sit(kill_at=0, kill_size=size)
    assert watched.sit(kill_at=0) == 0
    assert watched.safe
    await run(order(WALKS), tmp_path / "whole")
    assert bytes_of(watched.folder) == bytes_of(tmp_path / "whole")
