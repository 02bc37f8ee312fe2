"""Shards: what goes in comes out, byte for byte the same each time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.errors import InputError
from dataforge.packing import shard
from dataforge.packing.conversations import Refused
from dataforge.packing.first_fit import first_fit_decreasing, shuffled
from dataforge.packing.shard import MANIFEST, Manifest, Packing, Shards, write_shards
from dataforge.packing.tokens import NO_LOSS, Tokens

CAPACITY = 20


def packing(capacity: int = CAPACITY) -> Packing:
    return Packing(
        tokenizer="tiny",
        tokenizer_digest="1",
        template_digest="2",
        capacity=capacity,
        overlong="drop",
        seed=0,
    )


def samples(lengths: list[int]) -> list[Tokens]:
    draws = np.random.default_rng(len(lengths))
    made = []
    for number, length in enumerate(lengths):
        ids = draws.integers(0, 49_152, length, dtype=np.int32)
        labels = np.where(draws.random(length) < 0.5, ids, NO_LOSS).astype(np.int32)
        made.append(Tokens(f"sample-{number}", ids, labels))
    return made


def write(folder: Path, made: list[Tokens], refused: list[Refused] | None = None) -> Manifest:
    bins = first_fit_decreasing([len(one.input_ids) for one in made], CAPACITY)
    return write_shards(folder, made, shuffled(bins, 0), refused or [], packing())


some_lengths = st.lists(st.integers(1, CAPACITY), min_size=1, max_size=30)


@given(lengths=some_lengths)
def test_every_sample_comes_back_once_and_whole(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("shards") / "out"
    made = samples(lengths)
    manifest = write(folder, made)
    found: dict[str, Tokens] = {}
    for row in Shards(folder):
        assert sum(row.seq_lengths) == len(row.input_ids) == len(row.labels) <= CAPACITY
        starts = np.cumsum([0, *row.seq_lengths])
        for name, start, stop in zip(row.sample_ids, starts, starts[1:], strict=False):
            assert row.position_ids[start:stop].tolist() == list(range(stop - start))
            assert name not in found
            found[name] = Tokens(name, row.input_ids[start:stop], row.labels[start:stop])
    assert found.keys() == {one.id for one in made}
    for one in made:
        assert found[one.id].input_ids.tolist() == one.input_ids.tolist()
        assert found[one.id].labels.tolist() == one.labels.tolist()
    assert manifest.tokens == sum(lengths) and manifest.samples == len(lengths)
    assert manifest.efficiency == round(sum(lengths) / (CAPACITY * manifest.rows), 6)


def test_the_same_samples_give_the_same_bytes(tmp_path: Path) -> None:
    made = samples([5, 17, 3, 20, 9, 9, 1])
    for name in ("one", "two"):
        write(tmp_path / name, made, [Refused("long", "longer than a row", "30 tokens")])
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == [MANIFEST, "refused.jsonl", "rows-00000.parquet"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_row_is_a_row_group_and_the_file_says_how_it_was_made(tmp_path: Path) -> None:
    manifest = write(tmp_path / "out", samples([20, 20, 11, 9]))
    path = tmp_path / "out" / "rows-00000.parquet"
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.ParquetFile(path).num_row_groups == manifest.rows == 3
    said = json.loads(pl.read_parquet_metadata(path)["dataforge.packing"])
    assert said["tokenizer_digest"] == "1" and said["algorithm"] == "first-fit-decreasing"
    assert said["capacity"] == CAPACITY and said["efficiency"] == 1.0


def test_rows_are_found_across_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "_ROWS_PER_FILE", 3)
    made = samples([20] * 8)
    manifest = write(tmp_path / "out", made)
    assert list(manifest.files.values()) == [3, 3, 2]
    shards = Shards(tmp_path / "out")
    names = [shards[row].sample_ids[0] for row in range(8)]
    assert sorted(names) == sorted(one.id for one in made)
    with pytest.raises(IndexError):
        shards[8]


def test_what_was_refused_is_counted_and_listed(tmp_path: Path) -> None:
    refused = [Refused("a", "too long", "9"), Refused("b", "no loss"), Refused("c", "too long")]
    manifest = write(tmp_path / "out", samples([4]), refused)
    assert manifest.refused == {"no loss": 1, "too long": 2}
    lines = (tmp_path / "out" / "refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a", "b", "c"]


def test_the_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert write(tmp_path / "out", samples([4, 5])) == Shards(tmp_path / "out").manifest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no shards lie here"),
        ("{", "is not a manifest"),
        ('{"packing": {"format_version": 99}}', "format version 99"),
    ],
)
def test_a_folder_that_holds_no_shards_is_refused(
    tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InputError, match=said):
        Shards(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "out", samples([4]))
    (tmp_path / "out" / "rows-00000.parquet").unlink()
    with pytest.raises(InputError, match=r"rows-00000\.parquet is missing"):
        Shards(tmp_path / "out")
