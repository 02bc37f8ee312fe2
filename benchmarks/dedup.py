"""How much faster pruned exact dedup is than the plain matrix product, and whether it is the same.

`python benchmarks/dedup.py [--quick] [--json FILE]`. Rows are synthetic: a mean direction that
gives random pairs a cosine of 0.1, eigenvalues falling as (i + 5)^-1.2, and a fifth of the rows
near an earlier one. BLAS runs on one thread and CPU seconds count, so that cores do not hide work.
Beside ours: the same rule by a blocked matrix product with a certified band, the one-by-one loop
in float32 (20,000 rows only); semhash and faiss are not measured. Errors are decisions that differ
from the exact blocked rule's. `--quick` is 20,000 x 384; else 100,000 x 384 and 100,000 x 768 too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

for _threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_threads] = "1"

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from dataforge.dedup.greedy import FirstCome  # noqa: E402
from dataforge.dedup.predicate import reaches, single_band  # noqa: E402

THRESHOLD = 0.7

Floats = NDArray[np.float32]
Kept = NDArray[np.bool_]


def drawn(count: int, dims: int, *, isotropic: bool = False) -> Floats:
    """Unit rows as the module says; `isotropic` ones share no direction."""
    draw = np.random.default_rng(count + dims)
    scale = np.ones(dims) if isotropic else (np.arange(dims) + 5.0) ** -0.6
    scale /= np.linalg.norm(scale)
    rows = draw.standard_normal((count, dims), np.float32) * scale.astype(np.float32)
    if not isotropic:
        rows[:, 0] += 1 / 3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    again = np.flatnonzero(draw.random(count) < 0.2)[1:]
    noise = draw.uniform(0.1, 0.8, (len(again), 1)).astype(np.float32) / np.float32(dims**0.5)
    first = rows[(draw.random(len(again)) * again).astype(int)]
    rows[again] = first + noise * draw.standard_normal((len(again), dims), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows)


def ours(rows: Floats) -> Kept:
    return FirstCome(rows.shape[1], THRESHOLD).add(rows).kept


def naive(rows: Floats) -> Kept:
    """One row after another, in float32, nothing certified."""
    kept = np.zeros(len(rows), np.bool_)
    so_far = np.empty_like(rows)
    count = 0
    for number, row in enumerate(rows):
        if not (so_far[:count] @ row >= np.float32(THRESHOLD)).any():
            so_far[count] = row
            count += 1
            kept[number] = True
    return kept


def blocked(rows: Floats, block: int = 512, tile: int = 2048) -> Kept:
    """The exact rule by a plain matrix product; pairs within the band are decided exactly."""
    band = single_band(rows.shape[1])
    so_far = np.empty_like(rows)
    count = 0
    kept = np.zeros(len(rows), np.bool_)
    for start in range(0, len(rows), block):
        ids = np.arange(start, min(start + block, len(rows)))
        for begin in range(0, count, tile):
            right = so_far[begin : min(count, begin + tile)]
            close = rows[ids] @ right.T
            top = close.max(axis=1)
            met = top >= THRESHOLD + band
            for place in np.flatnonzero((top >= THRESHOLD - band) & ~met):
                met[place] = any(
                    reaches(rows[ids[place]], right[other], THRESHOLD)
                    for other in np.flatnonzero(close[place] >= THRESHOLD - band)
                )
            ids = ids[~met]
        close = rows[ids] @ rows[ids].T
        for row in range(len(ids)):
            others = np.flatnonzero(close[row, :row] >= THRESHOLD - band)
            kept[ids[row]] = not any(
                kept[ids[other]] and reaches(rows[ids[row]], rows[ids[other]], THRESHOLD)
                for other in others
            )
        ids = ids[kept[ids]]
        so_far[count : count + len(ids)] = rows[ids]
        count += len(ids)
    return kept


def cpu(run: Callable[[Floats], Kept], rows: Floats) -> tuple[float, Kept]:
    began = time.process_time()
    kept = run(rows)
    return time.process_time() - began, kept


def measure(*, quick: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Results and ratios."""
    results: dict[str, float] = {}
    ratios: dict[str, float] = {}
    ours(drawn(2_000, 384))
    same = True
    shapes = [(20_000, 384)] if quick else [(20_000, 384), (100_000, 384), (100_000, 768)]
    for count, dims in shapes:
        label = f"{count // 1000}k_{dims}"
        rows = drawn(count, dims)
        results[f"cpu_s_{label}"], mine = cpu(ours, rows)
        results[f"blocked_gemm_cpu_s_{label}"], exact = cpu(blocked, rows)
        results[f"errors_{label}"] = float((mine != exact).sum())
        results[f"dropped_share_{label}"] = float(1 - mine.mean())
        same &= bool((mine == exact).all())
        ratios[f"speed_vs_blocked_gemm_{label}"] = (
            results[f"blocked_gemm_cpu_s_{label}"] / results[f"cpu_s_{label}"]
        )
        if count == 20_000:
            results[f"naive_cpu_s_{label}"], loop = cpu(naive, rows)
            results[f"naive_errors_{label}"] = float((loop != exact).sum())
            plain = drawn(count, dims, isotropic=True)
            slow, kept = cpu(ours, plain)
            base, exact = cpu(blocked, plain)
            ratios["isotropic_time_vs_blocked_gemm"] = slow / base
            same &= bool((kept == exact).all())
    ratios["speed_vs_blocked_gemm"] = ratios[f"speed_vs_blocked_gemm_{label}"]
    ratios["same_kept_set"] = float(same)
    return results, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="20,000 x 384 only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    results, ratios = measure(quick=options.quick)
    report = {
        "name": "dedup",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "results": results,
        "ratios": ratios,
    }
    for name, value in (results | ratios).items():
        print(f"{name:42} {value:.3f}")
    print("semhash and faiss: not measured")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
