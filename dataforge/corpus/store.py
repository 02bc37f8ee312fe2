"""Samples and calls on disk: two Parquet tables with one versioned schema each.

A table is written whole, beside its final place, and renamed over it, so a reader sees the old one
or the new one and never half of either. The bytes depend on the rows alone: no clock, no thread
count, no machine. Rows go through in batches, so memory does not follow their number. Appending is
not offered; the run's journal is what grows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

# With one arena for all threads, polars' allocator (jemalloc) keeps less of what was freed: a peak
# of 87 MB where it was 103, at the same speed. It reads this once, when polars is loaded.
os.environ.setdefault("_RJEM_MALLOC_CONF", "narenas:1")

import polars as pl
from polars.io.plugins import register_io_source

from dataforge.corpus.atomic import replace_file
from dataforge.corpus.record import Call, Fact, Sample, Turn
from dataforge.errors import InputError, RunError

__all__ = [
    "CALLS_SCHEMA",
    "FORMAT_VERSION",
    "SAMPLES_SCHEMA",
    "read_calls",
    "read_samples",
    "scan_calls",
    "scan_samples",
    "write_calls",
    "write_samples",
]

FORMAT_VERSION = 2
"""Rises whenever a column changes its name, type or meaning."""

_TURN: Mapping[str, pl.DataType] = {"role": pl.String(), "content": pl.String()}
_WEIGHED_TURN: Mapping[str, pl.DataType] = {**_TURN, "weight": pl.Int8()}

SAMPLES_SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "seed_id": pl.String(),
        "walk": pl.Int64(),
        "path": pl.List(pl.String()),
        "facts": pl.String(),
        "messages": pl.List(pl.Struct(_TURN)),
        "score": pl.Float64(),
    }
)
"""Columns of `corpus.parquet`; `facts` is a JSON object."""

CALLS_SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "sample_id": pl.String(),
        "node": pl.String(),
        "kind": pl.String(),
        "step": pl.String(),
        "attempt": pl.Int64(),
        "superseded": pl.Boolean(),
        "finish": pl.String(),
        "messages": pl.List(pl.Struct(_WEIGHED_TURN)),
        "weights": pl.String(),
    }
)
"""Columns of `calls.parquet`."""

_BATCH = 1_000
_ROW_GROUP = 1_000
"""Rows turned into columns at a time; keeps Python objects few while polars holds the rest."""

_Row = TypeVar("_Row", Sample, Call)


def write_samples(path: Path, samples: Iterable[Sample]) -> int:
    """Replaces the table at `path` by `samples` in the order given; how many there were."""
    return _write(path, "samples", SAMPLES_SCHEMA, samples, _sample_row, _TURN)


def write_calls(path: Path, calls: Iterable[Call]) -> int:
    """Replaces the table at `path` by `calls` in the order given; how many there were."""
    return _write(path, "calls", CALLS_SCHEMA, calls, _call_row, _WEIGHED_TURN)


def scan_samples(path: Path) -> pl.LazyFrame:
    """The samples at `path`, read only as far as the query needs; InputError if they are not."""
    return _scan(path, "samples", SAMPLES_SCHEMA)


def scan_calls(path: Path) -> pl.LazyFrame:
    """The calls at `path`, read only as far as the query needs; InputError if they are not."""
    return _scan(path, "calls", CALLS_SCHEMA)


def read_samples(path: Path) -> Iterator[Sample]:
    """The samples at `path`, in order, a batch in memory at a time."""
    for row in _rows(scan_samples(path)):
        facts: dict[str, Fact] = json.loads(str(row["facts"]))
        yield Sample(
            id=str(row["id"]),
            seed_id=str(row["seed_id"]),
            walk=_int(row["walk"]),
            path=tuple(str(name) for name in _list(row["path"])),
            facts=facts,
            messages=_turns(row["messages"]),
            score=score if isinstance(score := row["score"], float) else None,
        )


def read_calls(path: Path) -> Iterator[Call]:
    """The calls at `path`, in order, a batch in memory at a time."""
    for row in _rows(scan_calls(path)):
        yield Call(
            id=str(row["id"]),
            sample_id=str(row["sample_id"]),
            node=str(row["node"]),
            kind=str(row["kind"]),
            step=str(row["step"]),
            attempt=_int(row["attempt"]),
            superseded=bool(row["superseded"]),
            finish=str(row["finish"]),
            messages=_turns(row["messages"]),
            weights=str(row["weights"]),
        )


def _write(
    path: Path,
    kind: str,
    schema: pl.Schema,
    rows: Iterable[_Row],
    as_row: Callable[[_Row], Mapping[str, object]],
    turn: Mapping[str, pl.DataType],
) -> int:
    written = 0
    broken: list[Exception] = []
    flat = {name: kind for name, kind in schema.items() if name != "messages"}

    def batches(*asked: object) -> Iterator[pl.DataFrame]:
        nonlocal written
        left = iter(rows)
        try:
            yield pl.DataFrame(schema=schema)
            while batch := list(islice(left, _BATCH)):
                written += len(batch)
                messages = _messages([row.messages for row in batch], turn)
                plain = pl.DataFrame(list(map(as_row, batch)), schema=flat)
                yield plain.with_columns(messages=messages).select(list(schema))
        except Exception as error:
            # polars would raise it as an error of its own.
            broken.append(error)
            raise

    table = register_io_source(batches, schema=schema, is_pure=True)
    metadata = {"dataforge.table": kind, "dataforge.format_version": str(FORMAT_VERSION)}
    try:
        replace_file(
            path,
            lambda beside: table.sink_parquet(
                beside,
                compression="zstd",
                compression_level=3,
                row_group_size=_ROW_GROUP,
                maintain_order=True,
                metadata=metadata,
            ),
        )
    except pl.exceptions.PolarsError as error:
        if broken:
            raise broken[0] from None
        raise RunError(f"{path}: cannot be written ({error}); what was there is kept") from error
    return written


def _scan(path: Path, kind: str, schema: pl.Schema) -> pl.LazyFrame:
    if not path.is_file():
        raise InputError(f"{path}: there is no {kind} table here; `dataforge run` writes one")
    try:
        metadata = pl.read_parquet_metadata(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: not a Parquet file ({error})") from error
    if metadata.get("dataforge.table") != kind:
        raise InputError(f"{path}: not a {kind} table written by DataForge")
    version = metadata.get("dataforge.format_version")
    if version != str(FORMAT_VERSION):
        raise InputError(
            f"{path}: format version {version}; this DataForge reads {FORMAT_VERSION}. "
            "Make the table again with `dataforge run`, which repeats no finished call"
        )
    return pl.scan_parquet(path).select(list(schema))


def _rows(table: pl.LazyFrame) -> Iterator[dict[str, object]]:
    frame = table.collect()
    yield from frame.iter_rows(named=True, buffer_size=_BATCH)


def _sample_row(sample: Sample) -> dict[str, object]:
    return {
        "id": sample.id,
        "seed_id": sample.seed_id,
        "walk": sample.walk,
        "path": list(sample.path),
        "facts": json.dumps(dict(sample.facts), ensure_ascii=False, sort_keys=True),
        "score": sample.score,
    }


def _call_row(call: Call) -> dict[str, object]:
    return {
        "id": call.id,
        "sample_id": call.sample_id,
        "node": call.node,
        "kind": call.kind,
        "step": call.step,
        "attempt": call.attempt,
        "superseded": call.superseded,
        "finish": call.finish,
        "weights": call.weights,
    }


def _messages(
    conversations: Sequence[Sequence[Turn]], turn: Mapping[str, pl.DataType]
) -> pl.Series:
    """A column of conversations: all turns as flat columns, then gathered by their row.

    Polars takes six times as long to find its way through lists of dicts.
    """
    if not all(conversations):
        told = [[{name: getattr(t, name) for name in turn} for t in each] for each in conversations]
        return pl.Series(told, dtype=pl.List(pl.Struct(turn)))
    flat = [each for turns in conversations for each in turns]
    columns = {
        name: pl.Series([getattr(each, name) for each in flat], dtype=kind)
        for name, kind in turn.items()
    }
    row = [row for row, turns in enumerate(conversations) for _ in turns]
    gathered = (
        pl.DataFrame({"row": row, **columns})
        .group_by("row", maintain_order=True)
        .agg(pl.struct(*turn).alias("messages"))
    )
    return gathered["messages"]


def _turns(cell: object) -> tuple[Turn, ...]:
    return tuple(
        Turn(str(turn["role"]), str(turn["content"]), _int(turn.get("weight", 1)))
        for turn in _list(cell)
        if isinstance(turn, dict)
    )


def _list(cell: object) -> list[object]:
    return cell if isinstance(cell, list) else []


def _int(cell: object) -> int:
    if not isinstance(cell, int):
        raise InputError(f"a whole number was due in the table, found {cell!r}")
    return cell
