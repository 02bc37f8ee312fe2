"""The whole path on real models: passages in, a checkpoint that transformers loads out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataforge.corpus.store import read_calls, read_samples
from dataforge.library.root import find_library

SEEDS = find_library().layers()[-1].root / "seeds" / "passages.jsonl"
PASSAGES = 8


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    """A few sound passages, short so that the tiny models come through quickly."""
    seeds = [json.loads(line) for line in SEEDS.read_text(encoding="utf-8").splitlines()]
    short = [seed for seed in seeds if "flaw" not in seed and len(seed["passage"]) < 900]
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(json.dumps(seed) + "\n" for seed in short[:PASSAGES]), "utf-8")
    return path


def demo(folder: Path, passages: Path) -> list[str]:
    """The command line of a small demo."""
    arguments = ("--seeds", passages, "--walks", PASSAGES, "--steps", "2", "--out", folder)
    return [sys.executable, "-m", "dataforge", "demo", *map(str, arguments)]


def logged(folder: Path) -> Iterator[dict[str, object]]:
    """The finished calls in a run's log."""
    for line in (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


@pytest.mark.slow
def test_one_command_killed_and_given_again_ends_in_a_checkpoint(
    tmp_path: Path, passages: Path
) -> None:
    folder = tmp_path / "demo"
    command = demo(folder, passages)

    # Killed once the first walk has ended: calls are logged, and others are being written.
    first = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path
    )
    assert first.stderr is not None
    for line in first.stderr:
        if " walks  accepted" in line:
            os.kill(first.pid, signal.SIGKILL)
            break
    first.stderr.close()
    assert first.wait() == -signal.SIGKILL

    again = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert again.returncode == 0, again.stdout + again.stderr

    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    keys = Counter(str(call["key"]) for call in logged(folder) if "key" in call)
    assert keys
    assert max(keys.values()) == 1, "a finished call was paid for twice"

    samples = list(read_samples(folder / "corpus.parquet"))
    assert samples
    assert report["accepted"] == len(samples)
    assert re.search(rf"^accepted +{len(samples)} ", again.stdout, re.MULTILINE)
    for sample in samples:
        assert [turn.role for turn in sample.messages] == ["user", "assistant"]
        assert sample.path[0] == "seed/gate"
        assert sample.path[-1] == "sample/chat"
    kinds = Counter(call.kind for call in read_calls(folder / "calls.parquet"))
    assert kinds.keys() == {"transform", "ask", "answer"}

    before, after = report_losses(again.stdout)
    assert after < before

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder / "checkpoint")
    tokenizer = AutoTokenizer.from_pretrained(folder / "checkpoint")
    prompt = tokenizer("The tide", return_tensors="pt").input_ids
    with torch.no_grad():
        assert model(prompt).logits.isfinite().all()


def report_losses(printed: str) -> tuple[float, float]:
    """Loss before and after, as the last table of the demo says them."""
    line = next(line for line in printed.splitlines() if line.startswith("checkpoint"))
    words = line.partition("(loss ")[2].split()
    return float(words[0]), float(words[2])
