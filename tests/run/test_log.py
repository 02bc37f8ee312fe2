"""A log keeps every whole line, whatever is torn off or left behind its end."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import RunError
from dataforge.run.log import Log, read_line, read_lines

RECORDS = st.lists(
    st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3),
    max_size=8,
)


def encoded(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")


def held(path: Path) -> list[bytes]:
    return [line.rstrip(b"\n") for _, line in read_lines(path)]


@given(RECORDS, st.data())
def test_any_torn_prefix_of_a_log_is_a_prefix_of_its_lines(
    tmp_path_factory: pytest.TempPathFactory, records: list[object], data: st.DataObject
) -> None:
    lines = [encoded(record) for record in records]
    whole = b"".join(line + b"\n" for line in lines)
    kept = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.mktemp("log") / "calls.jsonl"
    path.write_bytes(whole[:kept])
    asyncio.run(_reopened(path))
    found = held(path)
    assert found == lines[: len(found)]
    assert len(found) == whole[:kept].count(b"\n")
    assert path.read_bytes() == b"".join(line + b"\n" for line in found)


@given(RECORDS, st.integers(1, 9_000))
def test_zeros_that_a_power_cut_left_are_cut(
    tmp_path_factory: pytest.TempPathFactory, records: list[object], zeros: int
) -> None:
    lines = [encoded(record) for record in records]
    path = tmp_path_factory.mktemp("log") / "calls.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + bytes(zeros))
    assert asyncio.run(_reopened(path)) == (zeros, 0)
    assert held(path) == lines


async def _reopened(path: Path) -> tuple[int, int]:
    log = Log.open(path)
    await log.close()
    return log.cut, log.damaged


async def test_a_line_that_was_damaged_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":\0\0\0\n{"c":3}\n')
    assert await _reopened(path) == (0, 1)
    assert held(path) == [b'{"a":1}', b'{"c":3}']


async def test_appends_at_once_all_land_and_are_found_at_their_offsets(tmp_path: Path) -> None:
    log = Log.open(tmp_path / "calls.jsonl")
    lines = [encoded({"n": n}) for n in range(200)]
    offsets = await asyncio.gather(*(log.append(line) for line in lines))
    await log.close()
    with log.path.open("rb") as file:
        assert [read_line(file, at).rstrip(b"\n") for at in offsets] == lines


async def test_what_is_appended_after_reopening_follows_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for n in range(3):
        log = Log.open(path)
        await log.append(encoded({"n": n}))
        await log.close()
    assert held(path) == [encoded({"n": n}) for n in range(3)]


async def test_a_full_disk_is_said_and_leaves_whole_lines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log.open(tmp_path / "calls.jsonl")
    await log.append(b'{"kept":1}')

    def half(descriptor: int, data: bytes, offset: int) -> int:
        os.lseek(descriptor, offset, os.SEEK_SET)
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dataforge.run.log.os.pwrite", half)
    with pytest.raises(RunError, match=r"calls\.jsonl: cannot be written \(No space left"):
        await log.append(b'{"lost":1}')
    with pytest.raises(RunError, match="No space left"):
        await log.append(b'{"late":1}')
    await log.close()
    assert log.path.read_bytes() == b'{"kept":1}\n'


def test_a_torn_log_that_cannot_be_mended_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":')

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dataforge.run.log.os.fsync", full)
    with pytest.raises(RunError, match=r"calls\.jsonl: cannot be read and mended \(No space left"):
        Log.open(path)


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        Log.open(tmp_path / "nowhere" / "calls.jsonl")


def test_reading_where_no_line_begins_is_said(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"a":1}\n')
    with path.open("rb") as file, pytest.raises(RunError, match="no whole line at byte 3"):
        read_line(file, 3)


async def test_a_log_cut_at_any_byte_of_its_last_line_goes_on_from_the_line_before(
    tmp_path: Path,
) -> None:
    whole = [encoded({"n": 1, "text": "before"}), encoded({"n": 2, "text": "} \u00e9\n{"})]
    data = b"".join(line + b"\n" for line in whole)
    path = tmp_path / "calls.jsonl"
    for size in range(len(whole[0]) + 1, len(data)):
        path.write_bytes(data[:size])
        log = Log.open(path)
        assert log.cut == size - len(whole[0]) - 1
        assert await log.append(whole[1]) == len(whole[0]) + 1
        await log.close()
        assert path.read_bytes() == data
