"""`dataforge run`: walks a graph over seeds until every walk has ended, and resumes by itself."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataforge.commands.options import door, library_option, span
from dataforge.commands.ordering import Request, make_order
from dataforge.commands.players import bindings
from dataforge.errors import DataForgeError, UsageError

if TYPE_CHECKING:
    from dataforge.commands.progress import Live
    from dataforge.library.graphs import LoadedGraph
    from dataforge.library.root import Library
    from dataforge.run.halt import Halt
    from dataforge.run.order import Order
    from dataforge.run.policy import Policy
    from dataforge.run.report import Report

__all__ = ["Stop", "command", "run", "show_table"]


class Stop(click.exceptions.Exit):
    """The user stopped a run; everything finished is on disk."""

    def __init__(self) -> None:
        super().__init__(130)


@click.command(name="run")
@click.argument("graph")
@click.option(
    "--seeds",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Passages: .jsonl, .jsonl.gz, .parquet, or a folder of .txt and .md. "
    "Default: those that come with the library.",
)
@click.option(
    "--field", "passage_field", metavar="NAME", help="Field of the seeds that holds the passage."
)
@click.option(
    "--walks",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many walks in all. Fewer than seeds: spread over them by --seed; more: several a "
    "seed. A larger N later only adds to a run.",
)
@click.option(
    "--per-seed",
    type=click.IntRange(min=1),
    metavar="K",
    help="How many walks from each seed. Default: 1.",
)
@click.option(
    "--accept",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop once N walks are accepted, the same N at any speed. --walks is then the most to "
    "make; without it, 20 for each.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: runs/GRAPH.")
@click.option("--seed", "run_seed", type=int, default=0, show_default=True, help="Decides draws.")
@click.option(
    "--policy",
    type=click.Choice(["uniform", "paths", "cover"]),
    help="How walks are chosen. uniform: at each step every open one is as likely, but for "
    "weights; paths: every whole walk is; cover: every edge in turn, as evenly as can be. "
    "Default: the graph's, else uniform.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="ROLE=SPEC",
    help="Who plays a role: embedded, gguf:/path/model.gguf, http://host:port/v1#name, "
    "openai/gpt-4o-mini, vllm:name, code:judge. Repeatable.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most walks in flight. Changes the speed and nothing else. Default: by the models.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop once models have read and written N tokens; the same command goes on from there.",
)
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Stop once calls have cost X dollars, by --prices; the same command goes on from there.",
)
@click.option(
    "--max-walks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Make N walks more and stop; the same command goes on from there.",
)
@click.option(
    "--time",
    "max_seconds",
    callback=span,
    metavar="SPAN",
    help="Stop after 90s, 15m or 2h; the same command goes on from there.",
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='What models cost: a TOML table ["name"] each, with in, out and cached, in USD a million '
    "tokens.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add what happens to FILE as JSON lines, one an event, without prompts and replies.",
)
@click.option(
    "--allow-shared-weights",
    is_flag=True,
    help="Let a judge judge what its own weights wrote; the run's record says so.",
)
@click.option(
    "--accept-changes",
    is_flag=True,
    help="Continue a run though its graph, models or seeds have changed: walks what they change "
    "again, and repeats no call that stays the same.",
)
@click.option(
    "--preview",
    type=click.IntRange(min=1),
    metavar="N",
    help="Make the first N walks only, show each in full, and estimate the whole; the same command "
    "without it goes on from there.",
)
@click.option(
    "--dry",
    is_flag=True,
    help="Show the prompts of the first walks (3, or --walks) over stand-ins for replies: no model "
    "is opened, nothing is written.",
)
@click.option(
    "--on",
    type=click.Choice(["ray"]),
    help="Make the walks on a Ray cluster instead of in this process; the corpus is the same.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Address of the Ray cluster. Default: the one this machine belongs to, else one of this "
    "machine alone.",
)
@click.option(
    "--hands",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that make walks on the cluster. Default: one a CPU.",
)
@library_option
def command(
    graph: str,
    seeds: Path | None,
    passage_field: str | None,
    walks: int | None,
    per_seed: int | None,
    accept: int | None,
    out: Path | None,
    run_seed: int,
    policy: Policy | None,
    models: tuple[str, ...],
    concurrency: int | None,
    max_tokens: int | None,
    max_usd: float | None,
    max_walks: int | None,
    max_seconds: float | None,
    prices: Path | None,
    log: Path | None,
    allow_shared_weights: bool,
    accept_changes: bool,
    preview: int | None,
    dry: bool,
    on: str | None,
    address: str | None,
    hands: int | None,
    library: Path | None,
) -> None:
    """Walks GRAPH, by name or path, over seed passages; what passes its judges is the corpus.

    Every finished model call is on disk before anything depends on it. Stop a run however you
    like: the same command continues it and repeats no finished call. The same seeds, --seed and
    replies give the same corpus, byte for byte.

    In the run directory: corpus.parquet (accepted conversations), calls.parquet (every call behind
    them), report.md and report.json, and the logs calls.jsonl and walks.jsonl.

    \b
    Examples:
      dataforge run single_turn_qa --walks 20
      dataforge run single_turn_qa --seeds pages.jsonl.gz --field text --per-seed 2
      dataforge run single_turn_qa --model answerer=http://localhost:8000/v1#qwen3-8b
    """
    if walks is not None and per_seed is not None:
        raise UsageError("--walks and --per-seed both say how many walks; give one of them")
    if dry and preview is not None:
        raise UsageError("--dry and --preview both look ahead; give one of them")
    if preview is not None and on is not None:
        raise UsageError(
            "--preview makes its walks in this process, and a run begun so does not go on "
            f"elsewhere; leave out --preview or --on {on}"
        )
    if on is None and (address is not None or hands is not None):
        raise UsageError("--address and --hands are for --on ray; give that too, or leave them out")
    request = Request(
        graph=graph,
        out=out or Path("runs") / Path(graph).stem,
        library=library,
        seeds=seeds,
        passage_field=passage_field,
        walks=walks,
        per_seed=per_seed or 1,
        accept=accept,
        run_seed=run_seed,
        policy=policy,
        models=bindings(models),
        concurrency=concurrency,
        max_tokens=max_tokens,
        max_usd=max_usd,
        max_walks=max_walks,
        max_seconds=max_seconds,
        prices=prices,
        log=log,
        allow_shared_weights=allow_shared_weights,
        accept_changes=accept_changes,
        on=on,
        address=address,
        hands=hands,
    )
    if dry:
        from dataforge.commands.dry import show_dry

        show_dry(request)
        return
    if preview is not None:
        from dataforge.commands.preview import show_preview

        show_preview(request, preview)
        return
    report = run(request)
    click.echo(f"\ncorpus   {request.out / 'corpus.parquet'}")
    click.echo(f"calls    {request.out / 'calls.parquet'}")
    click.echo(f"report   {request.out / 'report.md'}")
    if report.accepted:
        folder = shlex.quote(str(request.out))
        click.echo(f"\nnext: {door()} show --run {folder}    {door()} pack {folder}")


def run(
    request: Request, *, show: bool = True, adjust: Callable[[Order], Order] | None = None
) -> Report:
    """Makes or continues a run, showing how it goes, then (`show`) its table.

    `adjust` is handed the order once models are open, and gives the one to carry out. Raises `Stop`
    when the user stopped it, DataForgeError when no walk was accepted; either way the table has
    been shown.
    """
    from dataforge.commands.progress import Live
    from dataforge.library.graphs import load_graph
    from dataforge.library.root import find_library
    from dataforge.run.garbage import collect_seldom

    library = find_library(request.library)
    loaded = load_graph(request.graph, library)
    collect_seldom()
    try:
        with Live() as live:
            report = asyncio.run(_go(request, live, library, loaded, adjust))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise _stop("stopped at once") from None
    if show or report.pending or not report.accepted:
        show_table(report)
    if report.pending and not report.stopped:
        raise _stop(f"stopped with {report.pending:,} walks to go")
    if report.stopped:
        click.echo(f"\nstopped: {report.stopped}; {report.pending:,} walks to go", err=True)
    if request.accept and report.accepted < request.accept and not report.pending:
        click.echo(
            f"\n{report.accepted:,} of the {request.accept:,} aimed for were accepted in "
            f"{report.walks:,} walks; give a larger --walks to go on",
            err=True,
        )
    if report.failed:
        click.echo(f"\n{report.failed:,} walks failed; the same command tries them again", err=True)
    if not (report.accepted or report.pending):
        raise DataForgeError("no walk was accepted; the table says which node turned them away")
    return report


def show_table(report: Report) -> None:
    """Prints a report's table."""
    from rich.console import Console
    from rich.table import Table

    from dataforge.run.report import table

    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(overflow="fold")
    for row in table(report):
        grid.add_row(*row)
    Console(markup=False, highlight=False).print(grid)


async def _go(
    request: Request,
    live: Live,
    library: Library,
    loaded: LoadedGraph,
    adjust: Callable[[Order], Order] | None,
) -> Report:
    from dataforge.commands.event_log import logged
    from dataforge.run.forge import forge
    from dataforge.run.halt import Halt

    halt = Halt()
    _mind_signals(halt, live)
    async with AsyncExitStack() as stack:
        crew = None
        order = await make_order(
            request, library, loaded, stack, live.say, opened=request.on is None
        )
        if adjust is not None:
            order = adjust(order)
        if request.on is not None:
            from dataforge.commands.ray_crew import RayCrew

            crew = stack.enter_context(
                RayCrew(request, [each.spec for each in order.players.values()])
            )
        watch = live if request.log is None else logged(request.log, live, stack)
        return await forge(order, request.out, watch, halt, crew)


def _mind_signals(halt: Halt, live: Live) -> None:
    """Ctrl-C or SIGTERM once finishes the calls in flight; twice stops at once."""
    task = asyncio.current_task()

    def stop() -> None:
        if halt.asked and task is not None:
            task.cancel()
            return
        halt.stop()
        live.say("stopping once the calls in flight are done; Ctrl-C again stops at once")

    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop)


def _stop(what: str) -> Stop:
    again = f"{door()} {shlex.join(sys.argv[1:])}"
    click.echo(f"\n{what}; what was finished is on disk. To continue:\n  {again}", err=True)
    return Stop()
