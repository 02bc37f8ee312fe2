"""A lane follows its file of workers whatever is written to it, and leaves nothing open."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dataforge.models.specs import read_spec
from dataforge.models.workers import stamp
from dataforge.run.events import Event, Said
from dataforge.run.gate import Gate
from dataforge.run.halt import Halt
from dataforge.run.lane import Lane, Worker
from dataforge.run.roster import Roster
from tests.run.scene import Voice


class Closing(Voice):
    """Counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


class Office:
    """A roster over a file, looked at as fast as can be."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.said: list[str] = []
        self.hired: list[tuple[str, Closing]] = []
        self.halt = Halt(lambda seconds: asyncio.sleep(0))
        self.lane = Lane("served:m", [], self.halt, self.watch)
        self.given = self.worker(Closing())
        self.lane.join(self.given)
        known = {"http://a/v1#m": self.given}
        self.roster = Roster(file, self.lane, known, self.hire, self.watch)

    def worker(self, transport: Closing) -> Worker:
        return Worker(transport, Gate(4, self.halt))

    def hire(self, spec: str) -> Worker:
        assert read_spec(spec).share
        transport = Closing()
        self.hired.append((spec, transport))
        return self.worker(transport)

    def watch(self, event: Event) -> None:
        assert isinstance(event, Said)
        self.said.append(event.text)

    async def write(self, data: bytes) -> None:
        """Writes the file, another than before, and waits until that was seen."""
        before, said = stamp(self.file), len(self.said)
        while stamp(self.file) == before:
            self.file.write_bytes(data)
        while len(self.said) == said:  # noqa: ASYNC110
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"http://\xff/v1#m\n", "is not UTF-8 at byte 8"),
        (b"what is this\n", "a worker is an endpoint"),
        (b"http://a/v1#m\nhttp://b/v1#other\n", "serves"),
        (b"http://b/v1#other\n", "lists workers of"),
        (b"http://b/v1#m?share=none\n", "share=none"),
    ],
)
async def test_a_file_that_cannot_be_followed_changes_nothing_and_is_followed_once_it_can(
    tmp_path: Path, bad: bytes, says: str
) -> None:
    file = tmp_path / "workers.txt"
    file.write_text("http://a/v1#m\n")
    office = Office(file)
    task = asyncio.create_task(office.roster.watch(office.halt))
    await asyncio.sleep(0)
    await office.write(bad)
    assert "stay as they are" in office.said[-1] and says in office.said[-1]
    assert office.lane.workers == [office.given]
    await office.write(b"http://a/v1#m\nhttp://b/v1#m\n")
    assert office.said[-1] == "a worker joins: http://b/v1#m"
    office.halt.stop()
    await task
    await office.roster.close()


async def test_all_that_were_hired_are_closed_and_none_that_was_given(tmp_path: Path) -> None:
    file = tmp_path / "workers.txt"
    file.write_text("http://a/v1#m\n")
    office = Office(file)
    task = asyncio.create_task(office.roster.watch(office.halt))
    await asyncio.sleep(0)
    await office.write(b"http://b/v1#m\n")
    await office.write(b"http://a/v1#m\nhttp://b/v1#m\n")
    (busy,) = (each for each in office.lane.workers if each.transport is office.hired[0][1])
    busy.take()
    await office.write(b"http://a/v1#m\n")
    office.halt.stop()
    await task
    await office.roster.close()
    assert [(spec, voice.closed) for spec, voice in office.hired] == [
        ("http://b/v1#m", 1),
        ("http://a/v1#m", 1),
    ]
    assert isinstance(office.given.transport, Closing) and office.given.transport.closed == 0
