"""`dataforge pack`: conversations in, packed shards out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import click

from dataforge.errors import PackingError, UsageError

__all__ = ["Packed", "command", "pack"]

Overlong = Literal["drop", "truncate", "error"]

_CAPACITY = 1_024
_SAY_EVERY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What a packing left behind."""

    out: Path
    """The folder of shards."""
    rows: int
    samples: int
    tokens: int
    trained_tokens: int
    """Tokens that carry loss."""
    capacity: int
    efficiency: float
    """Tokens per token of capacity, in (0, 1]."""
    refused: Mapping[str, int]
    """Reason -> samples left out for it; each is listed in `out/refused.jsonl`."""


def pack(
    source: Path,
    *,
    tokenizer: str = "embedded",
    capacity: int = _CAPACITY,
    overlong: Overlong = "drop",
    calls: bool = True,
    seed: int = 0,
    out: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Packed:
    """Packs a run directory, or a file of `messages`, into shards at `out`.

    Without `out` they go to `shards/` in the run directory, or beside the file. `say` is told what
    takes a while. PackingError when not one sample can be trained on.
    """
    # Imported here: they take seconds, and `--help` needs none of them.
    from dataforge.packing.conversations import Refused, read_conversations
    from dataforge.packing.first_fit import first_fit_decreasing, shuffled
    from dataforge.packing.folder import check_replaceable
    from dataforge.packing.shard import MANIFEST, Packing, write_shards
    from dataforge.packing.tokenizer import open_tokenizer
    from dataforge.packing.tokens import Tokens, tokenize

    if capacity < 2:
        raise UsageError(f"--capacity {capacity}: a row must hold 2 tokens or more")
    if seed < 0:
        raise UsageError(f"--seed {seed}: must be 0 or more")
    inside = source / "shards" if source.is_dir() else source.with_name(f"{source.stem}-shards")
    folder = out or inside
    check_replaceable(folder, MANIFEST)
    conversations = read_conversations(source, calls=calls)
    say(f"opening the tokenizer {tokenizer}")
    opened = open_tokenizer(tokenizer)
    say(f"tokenizing {source}")
    samples: list[Tokens] = []
    refused: list[Refused] = []
    for item in tokenize(conversations, opened, capacity=capacity, overlong=overlong):
        if isinstance(item, Refused):
            refused.append(item)
        else:
            samples.append(item)
            if len(samples) % _SAY_EVERY == 0:
                say(f"tokenized {len(samples):,} samples")
    if not samples:
        raise PackingError(_nothing(source, Counter(item.reason for item in refused)))
    say(f"packing {len(samples):,} samples into rows of {capacity:,} tokens")
    lengths = [len(sample.input_ids) for sample in samples]
    manifest = write_shards(
        folder,
        samples,
        shuffled(first_fit_decreasing(lengths, capacity), seed),
        refused,
        Packing(
            tokenizer=opened.name,
            tokenizer_digest=opened.digest,
            template_digest=opened.template_digest,
            capacity=capacity,
            overlong=overlong,
            seed=seed,
        ),
    )
    return Packed(
        out=folder,
        rows=manifest.rows,
        samples=manifest.samples,
        tokens=manifest.tokens,
        trained_tokens=manifest.trained_tokens,
        capacity=capacity,
        efficiency=manifest.efficiency,
        refused=manifest.refused,
    )


@click.command("pack")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--tokenizer",
    default="embedded",
    show_default=True,
    metavar="SPEC",
    help="Whose tokens and chat template: embedded, gguf:/path/model.gguf, or a Hugging Face "
    "folder with tokenizer.json in it.",
)
@click.option(
    "--capacity",
    default=_CAPACITY,
    show_default=True,
    metavar="N",
    help="Longest row, in tokens: what the trainer is to see at once.",
)
@click.option(
    "--overlong",
    type=click.Choice(["drop", "truncate", "error"]),
    default="drop",
    show_default=True,
    help="What becomes of a sample longer than a row: left out and listed, cut, or an error.",
)
@click.option(
    "--calls/--no-calls",
    default=True,
    show_default=True,
    help="Pack every model call of the accepted walks of a run, not their final samples alone.",
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the order of rows.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the shards go. Without it: shards/ in the run, or NAME-shards/ beside the file.",
)
def command(
    source: Path,
    tokenizer: str,
    capacity: int,
    overlong: str,
    calls: bool,
    seed: int,
    out: Path | None,
) -> None:
    """Packs SOURCE into fixed-length shards for a tokenizer.

    SOURCE is a run directory, or a .parquet or .jsonl file whose rows hold `messages`, a list of
    turns with a role and a content. Samples are laid end to end into rows of at most --capacity
    tokens by exact First-Fit-Decreasing. Loss lies on what the assistant says and on the token that
    ends its turn. What cannot be packed is counted, and listed in refused.jsonl beside the shards.

    \b
    Examples:
      dataforge pack runs/demo
      dataforge pack runs/demo --tokenizer ~/models/qwen3-0.6b --capacity 16384
      dataforge pack chats.jsonl --overlong truncate --out shards
    """
    packed = pack(
        source,
        tokenizer=tokenizer,
        capacity=capacity,
        overlong=cast("Overlong", overlong),
        calls=calls,
        seed=seed,
        out=out,
        say=lambda line: click.echo(f"{line} …", err=True),
    )
    for reason, count in packed.refused.items():
        click.echo(f"left out: {reason}: {count:,}")
    click.echo(
        f"{packed.samples:,} samples in {packed.rows:,} rows of at most {packed.capacity:,} "
        f"tokens, {packed.efficiency:.2%} full"
    )
    click.echo(f"{packed.tokens:,} tokens, {packed.trained_tokens:,} of them carry loss")
    click.echo(f"shards: {packed.out}")


def _nothing(source: Path, reasons: Mapping[str, int]) -> str:
    if not reasons:
        return f"{source}: there are no samples to pack"
    counted = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
    return f"{source}: not one sample can be packed ({counted}); raise --capacity or mend them"
