"""Tables come back as they were written, whole or not at all, as bytes that rows alone decide."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.corpus.record import Call, Sample, Turn
from dataforge.corpus.store import (
    FORMAT_VERSION,
    read_calls,
    read_samples,
    scan_samples,
    write_calls,
    write_samples,
)
from dataforge.errors import InputError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TURNS = st.lists(st.builds(Turn, role=TEXT, content=TEXT), max_size=3).map(tuple)
SAMPLES = st.builds(
    Sample,
    id=TEXT,
    seed_id=TEXT,
    walk=st.integers(0, 2**40),
    path=st.lists(TEXT, max_size=4).map(tuple),
    facts=st.dictionaries(TEXT, TEXT | st.integers(-(2**53), 2**53) | st.booleans(), max_size=3),
    messages=TURNS,
    score=st.none() | st.floats(0, 1),
)
CALLS = st.builds(
    Call,
    id=TEXT,
    sample_id=TEXT,
    node=TEXT,
    kind=TEXT,
    step=TEXT,
    attempt=st.integers(1, 9),
    superseded=st.booleans(),
    finish=st.sampled_from(["stop", "length"]),
    messages=TURNS,
    weights=TEXT,
)


@given(st.lists(SAMPLES, max_size=5), st.lists(CALLS, max_size=5))
def test_rows_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Sample], calls: list[Call]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    assert write_samples(folder / "corpus.parquet", samples) == len(samples)
    assert write_calls(folder / "calls.parquet", calls) == len(calls)
    assert list(read_samples(folder / "corpus.parquet")) == samples
    assert list(read_calls(folder / "calls.parquet")) == calls


def sample(number: int) -> Sample:
    return Sample(
        id=f"{number:016x}",
        seed_id=f"seed-{number}",
        walk=0,
        path=("seed/gate", "sample/chat"),
        facts={"task": "summary"},
        messages=(Turn("user", f"Ask {number}"), Turn("assistant", "Tell")),
        score=0.5,
    )


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_samples(tmp_path / name, (sample(number) for number in range(5_000)))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_table_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    write_samples(path, [sample(1)])
    before = path.read_bytes()
    unwritable = Sample(id="\ud800", seed_id="", walk=0, path=(), facts={}, messages=(), score=None)
    with pytest.raises(UnicodeEncodeError):
        write_samples(path, [sample(2), unwritable])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["corpus.parquet"]


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "there is no samples table here"), (b"nonsense", "not a Parquet file")],
)
def test_what_is_no_table_is_said(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "corpus.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        scan_samples(path)


def test_a_foreign_table_and_another_kind_are_refused(tmp_path: Path) -> None:
    foreign, calls = tmp_path / "foreign.parquet", tmp_path / "calls.parquet"
    pl.DataFrame({"id": ["a"]}).write_parquet(foreign)
    write_calls(calls, [])
    for path in (foreign, calls):
        with pytest.raises(InputError, match="not a samples table written by DataForge"):
            scan_samples(path)


def test_another_format_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    pl.DataFrame({"id": ["a"]}).write_parquet(
        path, metadata={"dataforge.table": "samples", "dataforge.format_version": "99"}
    )
    with pytest.raises(
        InputError, match=rf"format version 99; .* reads {FORMAT_VERSION}\..*dataforge run"
    ):
        scan_samples(path)
