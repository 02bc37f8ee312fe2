"""How fast samples are packed, how full the rows are, and whether they are the textbook's.

`python benchmarks/packing.py [--quick] [--json FILE]`. Lengths are lognormal with the mean and the
median that the Hermes 4 report gives (14,394 and 9,382 characters; 4 to a token), cut at the
capacity of 16,384 tokens. Ours and the peer (TRL's best-fit-decreasing, where installed) run in
turn and medians count; compiling is done before the clock starts. TRL packs tokens where ours packs
lengths, so it gets lengths and capacity divided by 64, which leaves it little to move and less to
search. The limit is reading the lengths once and writing as many numbers once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dataforge.packing.first_fit import first_fit_decreasing

CAPACITY = 16_384
MEAN, MEDIAN, CHARACTERS_PER_TOKEN = 14_394, 9_382, 4
PEER_SCALE = 64
CHECKED = 30_000
"""Samples on which the textbook, quadratic as it is, is run beside ours."""

Lengths = NDArray[np.int32]


def drawn(count: int) -> Lengths:
    """Lengths in tokens, as the report's samples have them."""
    spread = math.sqrt(2 * math.log(MEAN / MEDIAN))
    characters = np.random.default_rng(count).lognormal(math.log(MEDIAN), spread, count)
    return np.clip(characters / CHARACTERS_PER_TOKEN, 1, CAPACITY).astype(np.int32)


def textbook(lengths: Lengths) -> list[list[int]]:
    """First-Fit-Decreasing by its definition: longest first, each into the first bin with room."""
    room = np.full(lengths.size, CAPACITY)
    bins: list[list[int]] = []
    for sample in np.argsort(-lengths, kind="stable"):
        number = int(np.argmax(room >= lengths[sample]))
        room[number] -= lengths[sample]
        if number == len(bins):
            bins.append([])
        bins[number].append(int(sample))
    return bins


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def trl_packer(count: int) -> Callable[[], object] | None:
    """TRL's packer over as many samples, each a 64th as long; None where TRL is not installed."""
    if find_spec("trl") is None or find_spec("datasets") is None:
        return None
    import pyarrow as pa
    from trl import pack_dataset

    datasets = import_module("datasets")

    datasets.disable_progress_bars()
    datasets.disable_caching()
    lengths = np.maximum(1, drawn(count) // PEER_SCALE)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    tokens = pa.LargeListArray.from_arrays(ends, pa.array(np.zeros(ends[-1], np.int8)))
    table = datasets.Dataset(pa.table({"input_ids": tokens}))
    at_once = {"batch_size": count, "keep_in_memory": True}
    return lambda: pack_dataset(table, CAPACITY // PEER_SCALE, strategy="bfd", map_kwargs=at_once)


def measure(rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Results and ratios."""
    results: dict[str, float] = {}
    ratios: dict[str, float] = {}
    first_fit_decreasing(drawn(300_000), CAPACITY)
    few = drawn(CHECKED)
    same = [one.tolist() for one in first_fit_decreasing(few, CAPACITY)] == textbook(few)
    ratios["same_bins_as_textbook"] = float(same)
    for count, label in ((1_000_000, "1m"), (5_000_000, "5m")):
        lengths = drawn(count)
        runs: dict[str, Callable[[], object]] = {
            "seconds": partial(first_fit_decreasing, lengths, CAPACITY),
            "limit_seconds": partial(np.add, lengths, 1),
        }
        peer = trl_packer(count) if label == "1m" else None
        if peer is not None:
            runs["trl_seconds"] = peer
        took: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                took[name].append(seconds(run))
        for name, times in took.items():
            results[f"{name}_{label}"] = statistics.median(times)
        bins = first_fit_decreasing(lengths, CAPACITY)
        results[f"efficiency_{label}"] = int(lengths.sum()) / (len(bins) * CAPACITY)
    ratios |= {name: results[name] for name in ("seconds_1m", "seconds_5m", "efficiency_1m")}
    if "trl_seconds_1m" in results:
        ratios["speed_vs_trl_1m"] = results["trl_seconds_1m"] / results["seconds_1m"]
    return results, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="once each, within 50 s on 2 cores")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    arguments = parser.parse_args()
    results, ratios = measure(rounds=1 if arguments.quick else 5)
    for name, value in (results | ratios).items():
        print(f"{name:24} {value:.5g}")
    if "speed_vs_trl_1m" not in ratios:
        print(f"{'speed_vs_trl_1m':24} not measured: TRL is not installed")
    if arguments.json is not None:
        record = {
            "name": "packing",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "results": results,
            "ratios": ratios,
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
