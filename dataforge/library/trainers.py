"""Trainers: Python files that take packed shards and a model, and leave a checkpoint.

`trainers/sft.py` defines `def train(training: Training, report: Report) -> Trained`; nothing else
is asked of it, so another loop is one file in a library of one's own. What the two sides hand each
other is defined here, with no heavy import. Files are found by name and read by path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dataforge.errors import LibraryError
from dataforge.library.modules import load_module
from dataforge.library.root import Library
from dataforge.library.tables import shown

__all__ = ["Report", "Step", "TrainFunction", "Trained", "Training", "load_trainer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What to train on what, and how."""

    shards: Path
    """A folder of packed shards."""
    model: Path
    """A Hugging Face folder: config, weights, tokenizer."""
    out: Path
    """Where the checkpoint goes, in one step, at the end."""
    steps: int | None = None
    """Optimizer steps; None is one pass over the rows."""
    lr: float = 1e-4
    """Highest learning rate."""
    warmup: int | None = None
    """Steps of rising learning rate; None is a tenth of all."""
    batch_rows: int = 1
    """Packed rows an optimizer step sees."""
    weight_decay: float = 0.01
    """Of matrices; norms and biases have none."""
    clip: float = 1.0
    """Longest gradient, as a norm."""
    seed: int = 0
    """Of the order of rows."""
    eval_rows: int = 2
    """Rows whose mean loss is taken before and after; the first that train."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one optimizer step did; one line of `metrics.jsonl`."""

    step: int
    """From 1."""
    steps: int
    """Of the whole training."""
    loss: float
    """Mean over the step's trained tokens, before the step, in nats."""
    lr: float
    grad_norm: float
    """Before clipping."""
    tokens: int
    """Tokens read, trained on or not."""
    trained_tokens: int
    """Tokens that carried loss."""
    seconds: float
    """Of this step."""
    tokens_per_s: float
    """`tokens` over `seconds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training left behind."""

    out: Path
    """The checkpoint's folder, which `AutoModelForCausalLM.from_pretrained` loads."""
    steps: int
    tokens: int
    """Tokens read in all steps."""
    losses: tuple[float, ...]
    """Of each step, in nats."""
    loss_before: float
    """Mean over the trained tokens of `eval_rows` rows, in nats."""
    loss_after: float
    """The same rows, after the last step."""
    seconds: float
    """Of the whole, loading and saving included."""
    tokens_per_s: float
    """Over the steps alone."""


Report = Callable[[str | Step], None]
"""Told each step, and a line of text about whatever else takes a while."""

TrainFunction = Callable[[Training, Report], Trained]
"""What a trainer file defines as `train`."""


def load_trainer(name: str, library: Library) -> TrainFunction:
    """The `train` function of `trainers/<name>.py`, from the uppermost library that has it."""
    path = library.find("trainers", name, ".py")
    layer = next(layer for layer in library.layers() if path.is_relative_to(layer.root))
    train = getattr(load_module(layer, path), "train", None)
    if not callable(train):
        raise LibraryError(
            f"{shown(path)}: defines no function `train(training, report)`; "
            f"trainers/sft.py of the standard library shows one"
        )
    loaded: TrainFunction = train
    return loaded
