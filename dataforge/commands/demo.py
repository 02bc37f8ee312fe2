"""`dataforge demo`: the whole path once, from passages to a fine-tuned checkpoint, in minutes.

It is the other commands in a row with settings that suit two cores and no key, and nothing that
they cannot do: what it prints says which.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from dataforge.commands.options import library_option

__all__ = ["command"]

_GRAPH = "single_turn_qa"
_WALKS = 20
_STEPS = 6
_CAPACITY = 1_024

_TINY = """\
The embedded models are tiny (SmolLM2, 135 million parameters, on the CPU) and write poorly: this
shows the path, not the quality. One line changes the writer or the answerer to any other model:

  {door} run {graph} --model answerer=openai/gpt-4o-mini     (any litellm name; a key)
  {door} run {graph} --model answerer=http://localhost:8000/v1#my-model
  {door} run {graph} --model answerer=gguf:/path/model.gguf
"""


@click.command(name="demo")
@click.option(
    "--seeds",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Your own passages: .jsonl, .jsonl.gz, .parquet, or a folder of .txt and .md. "
    "Default: those that come with the library.",
)
@click.option("--field", metavar="NAME", help="Field of the seeds that holds the passage.")
@click.option("--walks", type=click.IntRange(min=1), default=_WALKS, show_default=True)
@click.option(
    "--steps", type=click.IntRange(min=1), default=_STEPS, show_default=True, help="Of training."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Default: runs/demo, or with --seeds runs/demo-NAME.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="ROLE=SPEC",
    help="As in `dataforge run`; without it the embedded models play.",
)
@click.option(
    "--accept-changes", is_flag=True, help="Continue though nodes, models or seeds have changed."
)
@library_option
def command(
    seeds: Path | None,
    field: str | None,
    walks: int,
    steps: int,
    out: Path | None,
    models: tuple[str, ...],
    accept_changes: bool,
    library: Path | None,
) -> None:
    """Makes a small judged corpus, packs it and fine-tunes on it, with embedded models.

    No key and no network. Stop it however you like: the same command continues and repeats no
    finished call.

    \b
    Examples:
      dataforge demo
      dataforge demo --seeds pages.jsonl.gz --field text --walks 20
    """
    from dataforge.commands.options import door
    from dataforge.commands.ordering import Request
    from dataforge.commands.players import bindings
    from dataforge.commands.run import run, show_table

    folder = out or Path("runs") / ("demo" if seeds is None else f"demo-{_plain_name(seeds)}")
    click.echo(_TINY.format(graph=_GRAPH, door=door()))
    report = run(
        Request(
            graph=_GRAPH,
            out=folder,
            library=library,
            seeds=seeds,
            passage_field=field,
            walks=walks,
            models=bindings(models),
            accept_changes=accept_changes,
        ),
        show=False,
    )
    exported = _export(folder)
    shards = _pack(folder)
    checkpoint, losses = _train(folder, steps, library)
    click.echo("")
    show_table(report)
    click.echo(f"\ncorpus      {folder / 'corpus.parquet'}  (as JSON lines: {exported})")
    click.echo(f"shards      {shards}")
    click.echo(f"checkpoint  {checkpoint}  (loss {losses})")
    click.echo(f"run report  {folder / 'report.md'}")
    click.echo(f"\nlook at a sample: {door()} show --run {shlex.quote(str(folder))}")


def _export(folder: Path) -> Path:
    from dataforge.corpus.export import export

    to = folder / "samples.jsonl"
    made = export(folder / "corpus.parquet", folder / "calls.parquet", to)
    click.echo(f"\nexported {made.samples:,} samples and {made.calls:,} calls", err=True)
    return to


def _pack(folder: Path) -> Path:
    from dataforge.commands.pack import pack

    packed = pack(folder, capacity=_CAPACITY, say=_say)
    click.echo(
        f"packed {packed.samples:,} samples into {packed.rows:,} rows of {packed.capacity:,} "
        f"tokens, {packed.efficiency:.1%} full",
        err=True,
    )
    for reason, count in packed.refused.items():
        click.echo(f"  left out {count:,}: {reason}", err=True)
    return packed.out


def _train(folder: Path, steps: int, library: Path | None) -> tuple[Path, str]:
    from dataforge.commands.train import said, train
    from dataforge.library.root import find_library

    began = time.monotonic()
    trained = train(
        folder,
        steps=steps,
        library=find_library(library),
        say=_say,
        on_step=lambda step: click.echo(f"  {said(step)}", err=True),
    )
    losses = f"{trained.loss_before:.3f} before, {trained.loss_after:.3f} after"
    took = time.monotonic() - began
    click.echo(f"trained {trained.steps:,} steps in {took:.0f} s: loss {losses}", err=True)
    return trained.out, losses


def _say(line: str) -> None:
    click.echo(f"{line} …", err=True)


def _plain_name(path: Path) -> str:
    return path.resolve().name.partition(".")[0] or "seeds"
