"""A run killed at any instant, by a real SIGKILL of a real process, repeats no finished call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.run.faulty import Desk, Plan, serving
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


# Drawn once over a run's course, and kept, so that a failure can be met again.
AT_REQUESTS = ((1, 18, 43, 60, 77), (6, 14, 39, 58, 90))
AT_BYTES = ((1, 9_300, 24_800, 41_500, 63_000), (2_700, 17_900, 33_200, 52_400, 71_000))


def sit_to_the_end(desk: Desk, sizes: tuple[int, ...] = ()) -> int:
    """Gives the command until it ends by itself; how often it was killed."""
    kills, todo = 0, list(sizes)
    while True:
        with desk.popen() as process:
            if todo:
                kill_when_written(process, desk.run / "calls.jsonl", todo.pop(0))
            _, err = process.communicate(timeout=120)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, err
            return kills
        kills += 1


@pytest.mark.slow
@pytest.mark.parametrize("course", range(len(AT_REQUESTS) + len(AT_BYTES)))
def test_the_command_killed_at_any_instant_loses_doubles_and_repeats_nothing(
    tmp_path: Path, course: int
) -> None:
    by_request = course < len(AT_REQUESTS)
    kills = AT_REQUESTS[course] if by_request else ()
    sizes = () if by_request else AT_BYTES[course - len(AT_REQUESTS)]
    with serving(tmp_path / "whole", Plan()) as served:
        whole = Desk(tmp_path / "whole", served.spec())
        assert sit_to_the_end(whole) == 0
    faults = {"limit": 5, "500": 5, "reset": 5}
    plan = Plan(faults, kills=kills, run=str(tmp_path / "run"))
    with serving(tmp_path, plan) as served:
        desk = Desk(tmp_path, served.spec())
        killed = sit_to_the_end(desk, sizes)
        assert killed == len(kills or sizes)
        assert desk.finished() == whole.finished()
        # What came back and was not yet in the journal may be asked again: what was in flight.
        repeated = served.counted("served") - whole.finished()
        assert repeated.total() <= killed * desk.concurrency
        asked = served.counted("asked")
        assert replace(desk, concurrency=1).give().code == 0
        assert served.counted("asked") == asked
    assert desk.conserved()
    assert desk.outcomes() == whole.outcomes()
    assert desk.tables() == whole.tables()


@pytest.mark.slow
@pytest.mark.parametrize("torn", ["calls.jsonl", "walks.jsonl"])
async def test_a_log_torn_at_any_byte_of_its_last_line_leads_to_the_same_corpus(
    tmp_path: Path, torn: str
) -> None:
    await run(order(2), tmp_path)
    whole = bytes_of(tmp_path)
    walks, log = tmp_path / "walks.jsonl", tmp_path / torn
    kept, data = walks.read_bytes(), log.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for size in range(last, len(data) + 1):
        # A walk is written after its calls are on disk, so no kill tears off those.
        walks.write_bytes(kept if torn == "walks.jsonl" else b"")
        log.write_bytes(data[:size])
        await run(order(2), tmp_path)
        assert bytes_of(tmp_path) == whole
