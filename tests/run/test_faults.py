"""A run as a process, against an endpoint and a disk that fail in every way they can."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.run.faulty import (
    HURRY,
    LIMITS,
    TRANSIENT,
    Desk,
    Plan,
    Served,
    serving,
)

pytestmark = pytest.mark.slow

Tables = tuple[bytes, bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """What a run without any fault makes."""
    folder = tmp_path_factory.mktemp("whole")
    with serving(folder, Plan()) as served:
        desk = Desk(folder, served.spec())
        done = desk.give()
    assert done.code == 0, done.err
    assert desk.conserved()
    assert set(served.counted("asked").values()) == {1}
    return desk.tables()


def test_rate_limits_fail_no_walk_use_up_no_attempt_and_change_no_byte(
    tmp_path: Path, whole: Tables
) -> None:
    with serving(tmp_path, Plan({"limit": 20, "wait": 8, "burst": 2})) as served:
        desk = Desk(tmp_path, served.spec())
        done = desk.give()
    assert done.code == 0, done.err
    assert served.faults() == set(LIMITS)
    assert desk.report()["failed"] == 0
    assert desk.conserved()
    assert desk.tables() == whole
    assert set(served.counted("served").values()) == {1}


def test_whatever_passes_changes_no_byte_and_the_run_ends(tmp_path: Path, whole: Tables) -> None:
    rates = dict.fromkeys((*LIMITS, *TRANSIENT), 4)
    with serving(tmp_path, Plan({**rates, "hang": 2})) as served:
        desk = Desk(tmp_path, served.spec("?timeout=3"))
        done = desk.give()
    assert done.code == 0, done.err
    assert served.faults() >= set(TRANSIENT) | {"hang"}
    assert desk.report()["failed"] == 0
    assert desk.conserved()
    assert desk.tables() == whole
    assert set(served.counted("served").values()) == {1}


def test_odd_replies_lose_no_walk_and_give_one_corpus_at_any_speed(tmp_path: Path) -> None:
    made: list[Tables] = []
    for concurrency in (1, 12):
        folder = tmp_path / str(concurrency)
        with serving(folder, Plan(odd=True)) as served:
            desk = Desk(folder, served.spec(), concurrency=concurrency)
            done = desk.give()
        assert done.code == 0, done.err
        assert desk.conserved()
        assert desk.report()["failed"] == 0
        assert set(served.counted("asked").values()) == {1}
        made.append(desk.tables())
    assert made[0] == made[1]


def test_an_endpoint_that_is_down_stops_the_run_and_the_same_command_goes_on(
    tmp_path: Path, whole: Tables
) -> None:
    held = tmp_path / "endpoint"
    with serving(held, Plan()) as served:
        desk = Desk(tmp_path, served.spec())
        dead = replace(desk, spec="http://127.0.0.1:9/v1#heron", walks=24)
        broken = dead.give()
        assert broken.code == 1
        assert "no call was served in" in broken.err
        assert "Give the same command again later" in broken.err
        # A few walks find out for all the others, which stay to be made.
        failed, pending = desk.report()["failed"], desk.report()["pending"]
        assert isinstance(failed, int)
        assert 0 < failed < 12
        assert pending == 24 - failed
        assert desk.conserved()
        # The same model at another address is the same model.
        done = desk.give()
    assert done.code == 0, done.err
    assert desk.conserved()
    assert desk.tables() == whole


def test_walks_that_fail_are_counted_and_the_same_command_mends_them(
    tmp_path: Path, whole: Tables
) -> None:
    with serving(tmp_path / "bad", Plan({"500": 75}, most=99)) as served:
        desk = Desk(tmp_path, served.spec())
        broken = desk.give()
    assert "the model kept failing" in " ".join(broken.out.split())
    assert 0 < desk.outcomes()["failed"] < desk.walks
    assert desk.conserved()
    before = desk.finished()
    # The same model at another address is the same model.
    with serving(tmp_path / "good", Plan()) as served:
        done = replace(desk, spec=served.spec()).give()
    assert done.code == 0, done.err
    assert not before & served.counted("asked")
    assert desk.report()["failed"] == 0
    assert desk.conserved()
    assert desk.tables() == whole


@pytest.mark.parametrize(
    ("fatal", "says"),
    [
        ((401, "no such key"), "set DATAFORGE_API_KEY in the environment"),
        ((402, "out of funds"), "The account has no credit left: top it up"),
        ((404, "The model `heron` does not exist"), "No such model, or no such address"),
    ],
)
def test_what_no_retry_mends_stops_the_run_in_one_line_and_loses_nothing(
    tmp_path: Path, whole: Tables, fatal: tuple[int, str], says: str
) -> None:
    with serving(tmp_path / "bad", Plan(fatal=fatal, fatal_from=20)) as served:
        desk = Desk(tmp_path, served.spec())
        done = desk.give()
    assert done.code == 1
    lines = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert fatal[1] in lines[0]
    assert says in lines[0]
    assert "Traceback" not in done.err
    # At once: those in flight when the first was refused, and none after.
    assert served.counted("asked").total() <= 20 + desk.concurrency
    assert desk.finished() == served.counted("served")
    assert desk.conserved()
    assert desk.report()["pending"]
    before = desk.finished()
    with serving(tmp_path / "good", Plan()) as served:
        again = replace(desk, spec=served.spec()).give()
    assert again.code == 0, again.err
    assert not before & served.counted("asked")
    assert desk.tables() == whole


def test_a_run_that_accepts_nothing_fails_with_the_reasons(tmp_path: Path) -> None:
    with serving(tmp_path, Plan(text="no")) as served:
        desk = Desk(tmp_path, served.spec(), walks=6)
        done = desk.give()
    assert done.code == 1
    assert "error: no walk was accepted" in done.err
    assert "text is not str of at least 5 characters" in " ".join(done.out.split())
    assert (desk.report()["accepted"], desk.report()["rejected"]) == (0, 6)
    assert desk.conserved()


def until(process: subprocess.Popen[str], what: str) -> str:
    """What a process says on stderr until it has said this."""
    assert process.stderr is not None
    said = ""
    while what not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def wait_for(process: subprocess.Popen[str], served: Served, requests: int) -> None:
    deadline = time.monotonic() + 120
    while served.counted("asked").total() < requests and time.monotonic() < deadline:
        assert process.poll() is None


def test_an_interrupt_finishes_the_calls_in_flight_and_a_second_stops_at_once(
    tmp_path: Path, whole: Tables
) -> None:
    held = tmp_path / "held"
    with serving(tmp_path, Plan(held=str(held))) as served:
        desk = Desk(tmp_path, served.spec())
        for twice in (True, False):
            held.write_text("")
            begun = served.counted("asked").total()
            before = desk.finished()
            with desk.popen() as process:
                wait_for(process, served, begun + desk.concurrency)
                process.send_signal(signal.SIGINT)
                until(process, "stopping once the calls in flight are done")
                if twice:
                    process.send_signal(signal.SIGINT)
                else:
                    held.unlink()
                _, err = process.communicate(timeout=120)
            assert process.returncode == 130, err
            assert "what was finished is on disk. To continue:" in err
            assert "run small --library" in err
            assert "Traceback" not in err
            assert served.counted("asked").total() == begun + desk.concurrency
            kept = 0 if twice else desk.concurrency
            assert (desk.finished() - before).total() == kept
        assert desk.conserved()
        before = desk.finished()
        done = desk.give()
    assert done.code == 0, done.err
    assert all(served.counted("asked")[name] <= 2 for name in before)
    assert desk.tables() == whole


def test_a_second_process_is_refused_at_once_and_the_first_goes_on(
    tmp_path: Path, whole: Tables
) -> None:
    held = tmp_path / "held"
    held.write_text("")
    with serving(tmp_path, Plan(held=str(held))) as served:
        desk = Desk(tmp_path, served.spec())
        with desk.popen() as first:
            wait_for(first, served, desk.concurrency)
            second = desk.give()
            held.unlink()
            _, err = first.communicate(timeout=120)
    assert second.code == 1
    assert f"process {first.pid} is writing this run" in second.err
    assert first.returncode == 0, err
    assert set(served.counted("asked").values()) == {1}
    assert desk.tables() == whole


@pytest.mark.parametrize("room", [4_000, 30_000])
def test_a_full_disk_is_said_in_one_line_and_room_lets_the_run_go_on(
    tmp_path: Path, whole: Tables, room: int
) -> None:
    def small() -> None:
        # The signal would end the process; the error is what a full disk gives.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    with serving(tmp_path, Plan()) as served:
        desk = Desk(tmp_path, served.spec(), environ={"PYTHONDONTWRITEBYTECODE": "1"})
        full = desk.give(first=small)
        assert full.code == 1
        assert "calls.jsonl: cannot be written" in full.err
        assert "Make room and give the same command again" in full.err
        assert "Traceback" not in full.err
        kept, asked = desk.finished(), served.counted("asked")
        assert kept
        # What came back and had no room is lost, and is no more than was in flight.
        assert (asked - kept).total() <= desk.concurrency
        done = desk.give()
    assert done.code == 0, done.err
    assert not (served.counted("asked") - asked).keys() & kept.keys()
    assert desk.tables() == whole


def like_anyone() -> None:
    """Takes from the superuser what lets it write where no one may."""
    if os.geteuid() == 0:
        drop, override, search = 24, 1, 2
        for capability in (override, search):
            assert ctypes.CDLL(None).prctl(drop, capability, 0, 0, 0) == 0


def test_a_directory_that_may_not_be_written_is_said_and_left_as_it_was(tmp_path: Path) -> None:
    with serving(tmp_path, Plan()) as served:
        desk = Desk(tmp_path, served.spec(), walks=3)
        assert desk.give().code == 0
        before, asked = desk.tables(), served.counted("asked")
        for each in (desk.run, *desk.run.iterdir()):
            each.chmod(0o555 if each.is_dir() else 0o444)
        done = replace(desk, walks=5).give(first=like_anyone)
        assert served.counted("asked") == asked
    assert done.code == 1
    assert "cannot be used as a run directory (Permission denied)" in done.err
    assert "--out" in done.err
    assert "Traceback" not in done.err
    assert desk.tables() == before


def test_a_directory_below_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    with serving(tmp_path, Plan()) as served:
        done = Desk(tmp_path, served.spec(), walks=3).give()
        assert not served.counted("asked")
    assert done.code == 1
    assert "cannot be used as a run directory" in done.err
    assert "Traceback" not in done.err


BACKWARDS = (
    HURRY
    + """
import time

told = time.time
times = 0


def jumping():
    global times
    times += 1
    return told() - (3600 if times > 20 else 0)


time.time = jumping
"""
)


def test_a_clock_that_jumps_back_ends_no_run_and_fools_no_limit(
    tmp_path: Path, whole: Tables
) -> None:
    with serving(tmp_path, Plan({"wait": 10, "500": 5})) as served:
        desk = Desk(tmp_path, served.spec(), custom=BACKWARDS, more=("--time", "10m"))
        done = desk.give()
    assert done.code == 0, done.err
    assert "stopped" not in done.err
    assert desk.tables() == whole
    seconds = desk.report()["seconds"]
    assert isinstance(seconds, float)
    assert seconds >= 0


def test_a_time_limit_holds_though_the_clock_jumps_back(tmp_path: Path, whole: Tables) -> None:
    with serving(tmp_path, Plan({"hang": 100})) as served:
        desk = Desk(tmp_path, served.spec("?timeout=2"), custom=BACKWARDS, more=("--time", "1s"))
        done = desk.give()
    assert done.code == 0, done.err
    assert "stopped: " in done.err
    assert desk.conserved()
