"""The command line: one group, one module a command, loaded when that command is asked for.

`dataforge --help` must be instant, so nothing is imported here but click and the errors; the short
helps below stand in for modules that are not loaded. A `DataForgeError` is the user's to put right:
one line on stderr and its exit code, and so is a file that the system refuses. Anything else is a
bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module

import click

from dataforge.errors import DataForgeError

__all__ = ["COMMANDS", "main"]

COMMANDS: Mapping[str, str] = {
    "demo": "A small judged corpus, packed and trained on; needs no key.",
    "run": "Walks a graph over seeds, keeps what passes; resumes by itself.",
    "show": "Shows a run, or one sample with all that led to it.",
    "export": "Writes a run's samples as JSONL or Parquet.",
    "pack": "Packs a run's samples into fixed-length training shards.",
    "train": "Fine-tunes a model on packed shards.",
    "check": "Validates a graph and lists the edges that follow.",
    "explain": "Says why one node can follow another, or cannot.",
    "plan": "Lists the walks that lead from given facts to a goal.",
    "draw": "Draws a graph as a page to explore, an image or Mermaid.",
    "workers": "Adds endpoints to a model while runs use it, or takes them out.",
    "doctor": "Says what is installed, what is missing and how to get it.",
    "init": "Begins a library of your own: nodes, a graph, seeds.",
}
"""Command -> its short help, in the order of a first visit."""

_BEGIN = """\
DataForge makes training data: passages in; a graph of nodes retells them, asks, answers and judges;
a corpus, packed shards and a fine-tuned model out.

Where to begin:

  dataforge doctor        what this machine has, and what is missing
  dataforge demo          the whole path on small embedded models, in minutes, without a key
  dataforge init my_lib   nodes, a graph and seeds of your own, small and running

Then `dataforge --help` lists the rest, and `dataforge COMMAND --help` explains each.
"""


class LazyCommands(click.Group):
    """A group that imports `dataforge.commands.NAME` when NAME is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of a first visit."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command's own `command`, or None for a name that is none."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"dataforge.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name for one that is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(COMMANDS)}."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; what the user can put right becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except DataForgeError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            # A file the system refuses, most often one the command line names; no bug of ours.
            if error.filename is None or error.strerror is None:
                raise
            click.echo(f"error: {error.filename}: {error.strerror}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(130)


def _say_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    # Imported here: reading package metadata costs more than everything above.
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"dataforge {version('dataforge-dag')}")
    except PackageNotFoundError:
        click.echo("dataforge, from a checkout that is not installed")
    ctx.exit()


@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Makes training data with graphs of language-model calls, and trains on it.

    Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted.
    """
    if ctx.invoked_subcommand is None:
        click.echo(_BEGIN, nl=False)
