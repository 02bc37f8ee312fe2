"""The index of kept rows: what it keeps, what it survives and what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dataforge.dedup.greedy import FirstCome
from dataforge.dedup.index import KeptIndex
from dataforge.errors import InputError, RunLocked

Floats = NDArray[np.float32]


def drawn(count: int, dims: int = 16, seed: int = 0) -> Floats:
    rows = np.random.default_rng(seed).standard_normal((count, dims))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / lengths, np.float32)


def opened(
    folder: Path, *, model: str = "mini", threshold: float = 0.7, dims: int = 16
) -> KeptIndex:
    return KeptIndex.open(folder, model=model, threshold=threshold, dims=dims, segment_rows=100)


def held(index: KeptIndex) -> Floats:
    return np.concatenate([np.empty((0, index.dims), np.float32), *index.rows()])


def test_batches_come_back_in_order_across_files(tmp_path: Path) -> None:
    rows = drawn(350)
    for part in np.split(rows, [1, 99, 100, 260]):
        opened(tmp_path).append(part)
    index = opened(tmp_path)
    assert (held(index) == rows).all()
    assert len(index) == 350
    index.verify()


def test_a_reopened_index_decides_as_one_that_never_closed(tmp_path: Path) -> None:
    rows = drawn(600, dims=16, seed=4)
    whole = FirstCome(16, 0.7).add(rows)
    kept: list[bool] = []
    partner: list[int] = []
    for part in np.split(rows, [7, 130, 400]):
        index = opened(tmp_path)
        outcome = index.first_come(block=50).add(part)
        index.append(part[outcome.kept])
        kept += outcome.kept.tolist()
        partner += outcome.partner.tolist()
    assert kept == whole.kept.tolist()
    assert partner == whole.partner.tolist()


@pytest.mark.parametrize("torn", [1, 64, 6401])
def test_what_lies_beyond_the_manifest_is_ignored_and_cut(tmp_path: Path, torn: int) -> None:
    rows = drawn(60)
    opened(tmp_path).append(rows[:50])
    with (tmp_path / "rows-00000.f32").open("ab") as file:
        file.write(b"x" * torn)
    (tmp_path / "rows-00001.f32").write_bytes(b"y" * torn)
    assert (held(opened(tmp_path)) == rows[:50]).all()
    opened(tmp_path).append(rows[50:])
    opened(tmp_path).append(drawn(60, seed=1))
    assert (held(opened(tmp_path)) == np.concatenate([rows, drawn(60, seed=1)])).all()
    opened(tmp_path).verify()


_WRITER = """
import os, signal, sys
from pathlib import Path
import numpy as np
from dataforge.dedup.index import KeptIndex
die_at, calls = int(sys.argv[2]), 0
def counted(real):
    def call(*arguments, **named):
        global calls
        if calls == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1
        return real(*arguments, **named)
    return call
rows = np.load(sys.argv[3])
index = KeptIndex.open(Path(sys.argv[1]), model="mini", threshold=0.7, dims=16, segment_rows=100)
for name in ("fsync", "open", "replace"):
    setattr(os, name, counted(getattr(os, name)))
Path.replace = counted(Path.replace)
Path.write_text = counted(Path.write_text)
index.append(rows)
"""


@pytest.mark.slow
def test_a_kill_between_any_two_writes_loses_all_of_a_batch_or_none(tmp_path: Path) -> None:
    before, batch = drawn(150), drawn(170, seed=1)
    np.save(tmp_path / "batch.npy", batch)
    seen: set[int] = set()
    for die_at in range(40):
        folder = tmp_path / str(die_at)
        opened(folder).append(before)
        done = subprocess.run(
            [sys.executable, "-c", _WRITER, str(folder), str(die_at), str(tmp_path / "batch.npy")],
            env=os.environ,
            check=False,
        )
        index = opened(folder)
        index.verify()
        seen.add(len(index))
        assert len(index) in (150, 320)
        if len(index) == 150:
            index.append(batch)
        assert (held(opened(folder)) == np.concatenate([before, batch])).all()
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert seen == {150, 320}
    assert done.returncode == 0


@pytest.mark.parametrize(("name", "values"), [("model", "other"), ("threshold", 0.8), ("dims", 17)])
def test_another_model_threshold_or_dimension_is_refused_in_one_line(
    tmp_path: Path, name: str, values: object
) -> None:
    opened(tmp_path).append(drawn(3))
    with pytest.raises(InputError, match=f"begun with {name}") as caught:
        opened(tmp_path, **{name: values})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_damage_is_found(tmp_path: Path) -> None:
    opened(tmp_path).append(drawn(30))
    path = tmp_path / "rows-00000.f32"
    good = path.read_bytes()
    path.write_bytes(good[:-1] + b"\x00")
    with pytest.raises(InputError, match="have changed"):
        opened(tmp_path).verify()
    path.write_bytes(good[:-1])
    with pytest.raises(InputError, match="bytes are wanted"):
        opened(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("30", "29"))
    with pytest.raises(InputError, match="damaged"):
        opened(tmp_path)


def test_rows_the_rule_refuses_are_not_stored(tmp_path: Path) -> None:
    rows = drawn(3)
    rows[1] = 0
    with pytest.raises(InputError, match="row 1 is zero"):
        opened(tmp_path).append(rows)
    assert len(opened(tmp_path)) == 0


def test_an_append_beside_another_is_refused(tmp_path: Path) -> None:
    stale = opened(tmp_path)
    opened(tmp_path).append(drawn(3))
    with pytest.raises(RunLocked, match="open it again"):
        stale.append(drawn(3))
