"""Supervised fine-tuning on packed rows: the whole loop, read top to bottom.

A row is many samples laid end to end. Positions start anew in each, attention stays within each,
and only the tokens that carry loss are scored. The loss of a step is the sum over its trained
tokens divided by their number over ALL rows of the step, so no token weighs more than another.

Float32 on the CPU; on CUDA, float32 master weights under bfloat16 autocast. One process, one
device, every parameter trained, the logits of a row's trained tokens at once: nothing here shards,
resumes or chunks the loss. The checkpoint appears whole at the end, or not at all.

Shapes: T tokens of one row, N of them trained, V vocabulary.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from dataforge.errors import TrainingError
from dataforge.kernels.hugging_face import use_packed_attention
from dataforge.library.trainers import Report, Step, Trained, Training
from dataforge.packing.folder import check_replaceable, replace_folder
from dataforge.packing.gguf import without_progress_bars
from dataforge.packing.order import rows_of_step, steps_per_epoch
from dataforge.packing.shard import Row, Shards
from dataforge.packing.tokenizer import ChatTokenizer, open_tokenizer
from dataforge.packing.tokens import NO_LOSS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MARKER = "training.json"
"""Shows that a folder is a checkpoint of ours."""


def train(training: Training, report: Report) -> Trained:
    """Trains the model on the shards and leaves a checkpoint; TrainingError when it cannot."""
    began = time.perf_counter()
    shards = Shards(training.shards)
    epoch = steps_per_epoch(len(shards), training.batch_rows)
    steps = epoch if training.steps is None else training.steps
    if steps < 1 or not len(shards):
        raise TrainingError(
            f"there is nothing to train: {len(shards)} rows in {training.shards}, {steps} steps"
        )
    check_replaceable(training.out, MARKER)
    tokenizer = open_tokenizer(str(training.model))
    check_tokenizer(shards, tokenizer, training)

    report("loading the model")
    model = load(training.model)
    seen = [row for step in range(min(steps, epoch)) for row in rows(shards, training, step)]
    probes = sorted(seen[: training.eval_rows])
    report(f"measuring the loss on {len(probes)} of the rows")
    loss_before = mean_loss(model, shards, probes)

    done: list[Step] = []
    for step in optimizer_steps(model, shards, training, steps):
        done.append(step)
        report(step)

    report(f"measuring the loss on the same {len(probes)} rows")
    loss_after = mean_loss(model, shards, probes)
    report("saving the checkpoint")
    notes = {
        "packing": asdict(shards.manifest.packing),
        "rows_measured": probes,
        "loss_before": loss_before,
        "loss_after": loss_after,
    }
    save(model, tokenizer, training, done, notes)
    tokens = sum(step.tokens for step in done)
    return Trained(
        out=training.out,
        steps=steps,
        tokens=tokens,
        losses=tuple(step.loss for step in done),
        loss_before=loss_before,
        loss_after=loss_after,
        seconds=time.perf_counter() - began,
        tokens_per_s=tokens / sum(step.seconds for step in done),
    )


def optimizer_steps(
    model: PreTrainedModel, shards: Shards, training: Training, steps: int
) -> Iterator[Step]:
    """Trains `model` in place, one optimizer step at a time."""
    optimizer = adamw(model, training)
    model.train()
    for step in range(steps):
        began = time.perf_counter()
        batch = [shards[row] for row in rows(shards, training, step)]
        trained_tokens = sum(int((row.labels != NO_LOSS).sum()) for row in batch)
        loss = 0.0
        for row in batch:
            share = summed_loss(model, row) / trained_tokens
            torch.autograd.backward(share)
            loss += share.item()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip).item()
        if not math.isfinite(loss + grad_norm):
            raise TrainingError(
                f"step {step + 1}: the loss is {loss} and the gradient's norm {grad_norm}, so "
                f"nothing was saved; try a lower --lr than {training.lr}"
            )
        lr = learning_rate(step, steps, training)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        optimizer.zero_grad()
        seconds = time.perf_counter() - began
        tokens = sum(len(row.input_ids) for row in batch)
        yield Step(
            step=step + 1,
            steps=steps,
            loss=loss,
            lr=lr,
            grad_norm=grad_norm,
            tokens=tokens,
            trained_tokens=trained_tokens,
            seconds=seconds,
            tokens_per_s=tokens / seconds,
        )


def summed_loss(model: PreTrainedModel, row: Row) -> Tensor:
    """Sum of -log p over the row's trained tokens, in nats; differentiable."""
    ids_T, labels_T, positions_T = (
        torch.from_numpy(tokens).to(model.device, torch.long)
        for tokens in (row.input_ids, row.labels, row.position_ids)
    )
    # The token at t is predicted at t - 1. Logits of what carries no loss are never made.
    at_N = (labels_T[1:] != NO_LOSS).nonzero()[:, 0]
    with precision(model):
        logits_NV = model(
            input_ids=ids_T[None],
            position_ids=positions_T[None],
            seq_lengths=row.seq_lengths,
            logits_to_keep=at_N,
            use_cache=False,
        ).logits[0]
    return cross_entropy(logits_NV.float(), labels_T[1:][at_N], reduction="sum")


@torch.no_grad()
def mean_loss(model: PreTrainedModel, shards: Shards, numbers: Sequence[int]) -> float:
    """Mean over all trained tokens of these rows, in nats."""
    model.eval()
    total = 0.0
    count = 0
    for row in (shards[number] for number in numbers):
        total += summed_loss(model, row).item()
        count += int((row.labels != NO_LOSS).sum())
    return total / max(1, count)


def rows(shards: Shards, training: Training, step: int) -> list[int]:
    """The rows of one optimizer step; a pure function of seed and step."""
    chosen = rows_of_step(len(shards), training.batch_rows, training.seed, step)
    return [int(row) for row in chosen]


def learning_rate(step: int, steps: int, training: Training) -> float:
    """Linear warm-up, then half a cosine down to zero; `step` counts from 0."""
    warmup = steps // 10 if training.warmup is None else training.warmup
    if step < warmup:
        return training.lr * (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return training.lr * (1 + math.cos(math.pi * done)) / 2


def adamw(model: PreTrainedModel, training: Training) -> torch.optim.Optimizer:
    """AdamW that decays matrices only."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [w for w in weights if w.dim() >= 2], "weight_decay": training.weight_decay},
        {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=training.lr, betas=(0.9, 0.95), fused=True)


def precision(model: PreTrainedModel) -> AbstractContextManager[object]:
    """bfloat16 over float32 weights on CUDA; plain float32 elsewhere."""
    on_cuda = model.device.type == "cuda"
    return torch.autocast("cuda", torch.bfloat16) if on_cuda else nullcontext()


def load(folder: Path) -> PreTrainedModel:
    """The model in float32 on the best device, attending within samples."""
    from transformers import AutoModelForCausalLM

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        with without_progress_bars():
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, local_files_only=True
            )
    except (OSError, ValueError) as error:
        raise TrainingError(f"the model at {folder} does not load: {error}") from error
    use_packed_attention(model)
    loaded: PreTrainedModel = model.to(device)
    return loaded


def check_tokenizer(shards: Shards, tokenizer: ChatTokenizer, training: Training) -> None:
    """TrainingError when the shards' tokens mean something else to the model."""
    packing = shards.manifest.packing
    if packing.tokenizer_digest != tokenizer.digest:
        raise TrainingError(
            f"the shards were packed with another tokenizer ({packing.tokenizer}) than the one in "
            f"{training.model}; pack again with that model's"
        )


def save(
    model: PreTrainedModel,
    tokenizer: ChatTokenizer,
    training: Training,
    done: Sequence[Step],
    notes: dict[str, object],
) -> None:
    """Puts weights, tokenizer, metrics and what was asked at `training.out`, in one step."""
    settings = {k: v for k, v in asdict(training).items() if not isinstance(v, Path)}

    def write(folder: Path) -> None:
        with without_progress_bars():
            model.save_pretrained(folder)
        tokenizer.save(folder)
        lines = [json.dumps(asdict(step)) + "\n" for step in done]
        (folder / "metrics.jsonl").write_text("".join(lines))
        (folder / MARKER).write_text(json.dumps({"settings": settings, **notes}, indent=2) + "\n")

    replace_folder(training.out, MARKER, write)
