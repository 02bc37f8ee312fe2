"""`dataforge train`: packed shards and a model in, a fine-tuned checkpoint out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from dataforge.commands.options import library_option
from dataforge.errors import InputError, UsageError
from dataforge.library.root import Library, find_library
from dataforge.library.trainers import Step, Trained, Training, load_trainer

__all__ = ["command", "said", "train"]

_LR = 1e-4


def train(
    shards: Path,
    *,
    model: str = "embedded",
    trainer: str = "sft",
    steps: int | None = None,
    lr: float = _LR,
    batch_rows: int = 1,
    seed: int = 0,
    eval_rows: int = 2,
    out: Path | None = None,
    library: Library | None = None,
    say: Callable[[str], None] = lambda _: None,
    on_step: Callable[[Step], None] = lambda _: None,
) -> Trained:
    """Trains `model` on `shards`, a folder of them or a run directory that holds one.

    Without `steps` each row is seen once; without `out` the checkpoint goes to `checkpoint/` beside
    the shards. `say` is told what takes a while and `on_step` each optimizer step.
    """
    # Imported here: it takes seconds, and `--help` needs none of it.
    from dataforge.packing.gguf import gguf_file, hugging_face_folder

    _at_least("--steps", steps, 1)
    _at_least("--batch-rows", batch_rows, 1)
    _at_least("--eval-rows", eval_rows, 1)
    _at_least("--seed", seed, 0)
    if lr <= 0:
        raise UsageError(f"--lr {lr}: must be above 0")
    folder = shards if not (shards / "shards").is_dir() else shards / "shards"
    run = load_trainer(trainer, library or find_library(None))
    gguf = gguf_file(model)
    path = Path(model) if gguf is None else hugging_face_folder(gguf, say)
    if not (path / "config.json").is_file():
        raise InputError(
            f"no model to train at {model!r}: {path / 'config.json'} is missing. Give embedded, "
            f"gguf:/path/model.gguf, or a Hugging Face folder"
        )
    training = Training(
        shards=folder,
        model=path,
        out=out or folder.parent / "checkpoint",
        steps=steps,
        lr=lr,
        batch_rows=batch_rows,
        seed=seed,
        eval_rows=eval_rows,
    )
    return run(training, lambda news: on_step(news) if isinstance(news, Step) else say(news))


@click.command("train")
@click.argument("shards", type=click.Path(path_type=Path))
@click.option(
    "--model",
    default="embedded",
    show_default=True,
    metavar="SPEC",
    help="What to fine-tune: embedded, gguf:/path/model.gguf (both converted to float32 once), or "
    "a Hugging Face folder.",
)
@click.option(
    "--trainer",
    default="sft",
    show_default=True,
    metavar="NAME",
    help="Which loop: trainers/NAME.py of your library or the standard one.",
)
@click.option("--steps", type=int, metavar="N", help="Optimizer steps. Without it: one pass.")
@click.option("--lr", default=_LR, show_default=True, metavar="X", help="Highest learning rate.")
@click.option(
    "--batch-rows", default=1, show_default=True, metavar="N", help="Packed rows a step sees."
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the order of rows.")
@click.option(
    "--eval-rows",
    default=2,
    show_default=True,
    metavar="N",
    help="Rows whose mean loss is measured before and after; they are among those trained on.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the checkpoint goes. Without it: checkpoint/ beside the shards.",
)
@library_option
def command(
    shards: Path,
    model: str,
    trainer: str,
    steps: int | None,
    lr: float,
    batch_rows: int,
    seed: int,
    eval_rows: int,
    out: Path | None,
    library: Path | None,
) -> None:
    """Fine-tunes a model on packed shards and leaves a checkpoint.

    SHARDS is a folder made by `dataforge pack`, or a run directory with shards/ in it. Attention
    stays within each sample of a row; the loss is the mean over all tokens that carry loss in a
    step. AdamW, cosine with warm-up; float32 on a CPU, bfloat16 on CUDA. The checkpoint is a
    Hugging Face folder that `AutoModelForCausalLM` loads, with metrics.jsonl in it.

    \b
    Examples:
      dataforge train runs/demo --steps 6
      dataforge train runs/demo/shards --model ~/models/qwen3-0.6b --batch-rows 8 --lr 2e-5
    """
    trained = train(
        shards,
        model=model,
        trainer=trainer,
        steps=steps,
        lr=lr,
        batch_rows=batch_rows,
        seed=seed,
        eval_rows=eval_rows,
        out=out,
        library=find_library(library),
        say=lambda line: click.echo(f"{line} …", err=True),
        on_step=lambda step: click.echo(said(step)),
    )
    click.echo(
        f"loss {trained.loss_before:.4f} -> {trained.loss_after:.4f} after {trained.steps:,} steps "
        f"and {trained.tokens:,} tokens ({trained.tokens_per_s:,.0f} tokens/s)"
    )
    click.echo(f"checkpoint: {trained.out}")


def said(step: Step) -> str:
    """One step in one line."""
    return (
        f"step {step.step}/{step.steps}  loss {step.loss:.4f}  lr {step.lr:.2e}  "
        f"{step.trained_tokens:,} of {step.tokens:,} tokens  "
        f"{step.tokens_per_s:,.0f} tokens/s"
    )


def _at_least(option: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise UsageError(f"{option} {value}: must be {least} or more")
