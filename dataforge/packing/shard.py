"""Packed shards: Parquet files of rows that a trainer reads one at a time, and their manifest.

A row is one bin: samples laid end to end, their boundaries explicit, nothing padded. Each row is a
Parquet row group of its own, so that reading one at random reads nothing else (fifty times as fast
as 64 rows a group, for a few percent of size).

A folder of shards is put in place whole, and its bytes depend on the samples, the tokenizer and the
settings alone: no clock, no machine, no path. It is not appended to. All samples of one packing are
in memory while it is written, 8 bytes a token.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dataforge.errors import InputError
from dataforge.packing.conversations import Refused
from dataforge.packing.first_fit import Bins
from dataforge.packing.folder import replace_folder
from dataforge.packing.tokens import NO_LOSS, Overlong, Tokens

__all__ = ["FORMAT_VERSION", "MANIFEST", "Manifest", "Packing", "Row", "Shards", "write_shards"]

FORMAT_VERSION = 1
"""Rises whenever a column or the manifest changes its meaning."""

MANIFEST = "manifest.json"

_ROWS_PER_FILE = 1_024

_TOKENS = pl.List(pl.Int32())
_SCHEMA = pl.Schema(
    {
        "input_ids": _TOKENS,
        "labels": _TOKENS,
        "position_ids": _TOKENS,
        "seq_lengths": _TOKENS,
        "sample_ids": pl.List(pl.String()),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How samples became rows; stands in every shard file."""

    tokenizer: str
    """What a person calls the tokenizer; holds no path."""
    tokenizer_digest: str
    template_digest: str
    capacity: int
    """Longest row, in tokens."""
    overlong: Overlong
    seed: int
    """Of the order of rows."""
    algorithm: str = "first-fit-decreasing"
    format_version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a folder of shards holds."""

    packing: Packing
    rows: int
    samples: int
    tokens: int
    trained_tokens: int
    """Tokens that carry loss."""
    efficiency: float
    """Tokens per token of capacity, in (0, 1]."""
    refused: Mapping[str, int]
    """Reason -> samples left out for it; each is listed in `refused.jsonl`."""
    files: Mapping[str, int]
    """File name -> its rows, in reading order."""
    digests: Mapping[str, str]
    """File name -> sha256 of its bytes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One packed row, as the trainer reads it."""

    input_ids: NDArray[np.int32]
    labels: NDArray[np.int32]
    """-100 where a token carries no loss; not shifted."""
    position_ids: NDArray[np.int32]
    """From 0 in each sample."""
    seq_lengths: tuple[int, ...]
    """Tokens of each sample in turn; their sum is the row's length."""
    sample_ids: tuple[str, ...]


def write_shards(
    folder: Path,
    samples: Sequence[Tokens],
    bins: Bins,
    refused: Sequence[Refused],
    packing: Packing,
) -> Manifest:
    """Puts the shards of `bins` at `folder`, with manifest.json and refused.jsonl beside them."""
    tokens = sum(len(sample.input_ids) for sample in samples)
    efficiency = round(tokens / (len(bins) * packing.capacity), 6)
    metadata = {"dataforge.packing": json.dumps(asdict(packing) | {"efficiency": efficiency})}

    def write(beside: Path) -> Manifest:
        files: dict[str, int] = {}
        digests: dict[str, str] = {}
        for number, first in enumerate(range(0, len(bins), _ROWS_PER_FILE)):
            path = beside / f"rows-{number:05}.parquet"
            rows = range(first, min(first + _ROWS_PER_FILE, len(bins)))
            _write_file(path, samples, [bins[row] for row in rows], metadata)
            files[path.name] = len(rows)
            with path.open("rb") as made:
                digests[path.name] = hashlib.file_digest(made, "sha256").hexdigest()
        manifest = Manifest(
            packing=packing,
            rows=len(bins),
            samples=len(samples),
            tokens=tokens,
            trained_tokens=sum(int((sample.labels != NO_LOSS).sum()) for sample in samples),
            efficiency=efficiency,
            refused=dict(sorted(Counter(item.reason for item in refused).items())),
            files=files,
            digests=digests,
        )
        with (beside / "refused.jsonl").open("w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(asdict(item))}\n" for item in refused)
        (beside / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n")
        return manifest

    return replace_folder(folder, MANIFEST, write)


class Shards:
    """A folder of packed shards, read row by row in any order."""

    def __init__(self, folder: Path) -> None:
        """InputError when `folder` holds no whole shards of this format."""
        path = folder / MANIFEST
        if not path.is_file():
            raise InputError(
                f"{folder}: no shards lie here ({MANIFEST} is missing); `dataforge pack` makes them"
            )
        self.folder = folder
        self.manifest = _manifest(path)
        self._starts = [0, *accumulate(self.manifest.files.values())]
        self._tables: dict[str, pl.LazyFrame] = {}
        for name in self.manifest.files:
            if not (folder / name).is_file():
                raise InputError(f"{folder}: {name} is missing; pack again")
            self._tables[name] = pl.scan_parquet(folder / name)

    def __len__(self) -> int:
        return self.manifest.rows

    def __getitem__(self, row: int) -> Row:
        """Row number `row`, from 0; IndexError past the last."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        file = bisect_right(self._starts, row) - 1
        table = self._tables[list(self._tables)[file]]
        cells = table.slice(row - self._starts[file], 1).collect()
        return Row(
            cells["input_ids"][0].to_numpy(writable=True),
            cells["labels"][0].to_numpy(writable=True),
            cells["position_ids"][0].to_numpy(writable=True),
            tuple(cells["seq_lengths"][0].to_list()),
            tuple(cells["sample_ids"][0].to_list()),
        )

    def __iter__(self) -> Iterator[Row]:
        return (self[row] for row in range(len(self)))


def _write_file(
    path: Path,
    samples: Sequence[Tokens],
    bins: Sequence[NDArray[np.int32]],
    metadata: dict[str, str],
) -> None:
    rows = [[samples[number] for number in one] for one in bins]
    lengths = [[len(sample.input_ids) for sample in row] for row in rows]
    columns: dict[str, list[object]] = {
        "input_ids": [np.concatenate([sample.input_ids for sample in row]) for row in rows],
        "labels": [np.concatenate([sample.labels for sample in row]) for row in rows],
        "position_ids": [
            np.concatenate([np.arange(n, dtype=np.int32) for n in ns]) for ns in lengths
        ],
        "seq_lengths": list(lengths),
        "sample_ids": [[sample.id for sample in row] for row in rows],
    }
    pl.DataFrame(columns, schema=_SCHEMA).write_parquet(
        path,
        compression="zstd",
        compression_level=3,
        row_group_size=1,
        statistics=False,
        metadata=metadata,
    )


def _manifest(path: Path) -> Manifest:
    try:
        stored = json.loads(path.read_text())
        version = stored["packing"]["format_version"]
        if version == FORMAT_VERSION:
            packing = Packing(**stored.pop("packing"))
            return Manifest(packing=packing, **stored)
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a manifest of shards ({error}); pack again") from error
    raise InputError(
        f"{path}: format version {version}; this DataForge reads {FORMAT_VERSION}. Pack again"
    )
