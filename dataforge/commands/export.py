"""`dataforge export`: a run's samples and calls as one file for other trainers."""

from __future__ import annotations

from pathlib import Path

import click

from dataforge.errors import InputError

__all__ = ["command"]


@click.command(name="export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--to", type=click.Path(path_type=Path), required=True, help="A .jsonl or .parquet file."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["messages", "sharegpt", "alpaca"]),
    default="messages",
    show_default=True,
    help="messages: role and content; sharegpt: from and value; alpaca: instruction and output.",
)
@click.option(
    "--calls/--no-calls",
    default=True,
    show_default=True,
    help="With every model call of the accepted walks, each as a sample of its own.",
)
@click.option(
    "--every-call",
    is_flag=True,
    help="Even calls not to learn from: of attempts that a later one replaced, and cut replies.",
)
def command(run: Path, to: Path, style: str, calls: bool, every_call: bool) -> None:
    """Writes the accepted samples of RUN, a run directory, as one JSONL or Parquet file.

    Each row has an id, a source (`sample`, or the node that made the call) and the conversation.
    A turn with weight 0 is an example out of a prompt: shown, and not to be learned.

    \b
    Examples:
      dataforge export runs/single_turn_qa --to qa.jsonl
      dataforge export runs/single_turn_qa --to qa.parquet --format sharegpt --no-calls
    """
    from dataforge.corpus.export import export

    if not run.is_dir():
        raise InputError(f"{run}: there is no such run directory; `dataforge run` makes one")
    called = run / "calls.parquet" if calls else None
    made = export(run / "corpus.parquet", called, to, style, every_call=every_call)
    click.echo(f"{to}: {made.samples:,} samples, {made.calls:,} calls")
