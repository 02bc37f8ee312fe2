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

from tests.run.faulty import HURRY, Desk, Plan, Served, serving
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
AT_REQUESTS = ((1, 12, 27, 40, 55), (4, 16, 25, 38, 52))
AT_BYTES = ((1, 7_301, 18_822, 29_514, 40_960), (2_733, 12_901, 23_250, 35_417, 46_003))

TORN = (
    HURRY
    + """
import os
import signal

really_write = os.pwrite
size = int(os.environ["KILL_AT"])


def pwrite(descriptor, data, offset):
    journal = os.readlink(f"/proc/self/fd/{descriptor}").endswith("/calls.jsonl")
    if journal and size and offset + len(data) > size:
        really_write(descriptor, data[: max(0, size - offset)], offset)
        os.kill(os.getpid(), signal.SIGKILL)
    return really_write(descriptor, data, offset)


os.pwrite = pwrite
"""
)
"""A `sitecustomize` by which a process dies with so many bytes of its journal written."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A run that nothing broke."""
    folder = tmp_path_factory.mktemp("whole")
    with serving(folder, Plan()) as served:
        desk = Desk(folder, served.spec())
        assert desk.give().code == 0
    return desk


def sit(desk: Desk, served: Served) -> int:
    """Gives the command once, which must ask for nothing that was finished; its exit status."""
    before, asked = desk.finished(), served.counted("asked")
    done = desk.give()
    assert done.code in (0, -signal.SIGKILL), done.err
    assert not (served.counted("asked") - asked).keys() & before.keys()
    return done.code


def check_continued(desk: Desk, served: Served, whole: Desk, killed: int) -> None:
    """A run that was killed and ended is the one that never was."""
    # Nothing finished was written twice; what came back and was not yet in the journal may have
    # been asked again, and is no more than was in flight.
    assert desk.finished() == whole.finished()
    repeated = served.counted("served") - whole.finished()
    assert repeated.total() <= killed * desk.concurrency
    assert desk.conserved()
    assert desk.outcomes() == whole.outcomes()
    assert desk.tables() == whole.tables()


@pytest.mark.slow
@pytest.mark.parametrize("kills", AT_REQUESTS)
def test_the_command_killed_at_any_request_loses_doubles_and_repeats_nothing(
    tmp_path: Path, whole: Desk, kills: tuple[int, ...]
) -> None:
    faults = {"limit": 5, "500": 5, "reset": 5}
    plan = Plan(faults, kills=kills, run=str(tmp_path / "run"))
    with serving(tmp_path, plan) as served:
        desk = Desk(tmp_path, served.spec())
        for _ in kills:
            assert sit(desk, served) == -signal.SIGKILL
        assert sit(desk, served) == 0
    check_continued(desk, served, whole, len(kills))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", AT_BYTES)
def test_the_command_killed_amid_any_write_loses_doubles_and_repeats_nothing(
    tmp_path: Path, whole: Desk, sizes: tuple[int, ...]
) -> None:
    with serving(tmp_path, Plan({"limit": 5, "500": 5, "reset": 5})) as served:
        desk = Desk(tmp_path, served.spec(), custom=TORN)
        for size in sizes:
            assert sit(replace(desk, environ={"KILL_AT": str(size)}), served) == -signal.SIGKILL
            assert (desk.run / "calls.jsonl").stat().st_size == size
        assert sit(replace(desk, environ={"KILL_AT": "0"}), served) == 0
    check_continued(desk, served, whole, len(sizes))


@pytest.mark.slow
@pytest.mark.parametrize("torn", ["calls.jsonl", "walks.jsonl"])
async def test_a_log_torn_anywhere_in_its_last_line_leads_to_the_same_corpus(
    tmp_path: Path, torn: str
) -> None:
    await run(order(2), tmp_path)
    whole = bytes_of(tmp_path)
    walks, log = tmp_path / "walks.jsonl", tmp_path / torn
    kept, data = walks.read_bytes(), log.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    ends = {last, last + 1, len(data) - 2, len(data) - 1, len(data)}
    for size in sorted({*range(last, len(data), 41), *ends}):
        # A walk is written after its calls are on disk, so no kill tears off those.
        walks.write_bytes(kept if torn == "walks.jsonl" else b"")
        log.write_bytes(data[:size])
        await run(order(2), tmp_path)
        assert bytes_of(tmp_path) == whole
