"""`dataforge show`: a run as a whole, or one walk of it with all that led to its end."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import get_args

import click

from dataforge.commands.options import json_option
from dataforge.errors import InputError

__all__ = ["command"]

_RUNS = Path("runs")
_LISTED = 10


@click.command(name="show")
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Run directory. Default: the one in runs/ that was written last.",
)
@click.option("--full", is_flag=True, help="Cut no text short.")
@json_option
def command(name: str | None, folder: Path | None, full: bool, as_json: bool) -> None:
    """Shows a run, or with ID one walk of it: seed, path, every call, every verdict.

    ID is that of a sample (which is its walk's), a call or a seed, or the beginning of a sample's;
    rejected and failed walks can be shown as well. A run can be looked at while it goes on.

    \b
    Examples:
      dataforge show
      dataforge show 3918fd
      dataforge show tidal-locks --run runs/single_turn_qa --full
    """
    from dataforge.run.story import find_walk, tell, tell_data

    folder = folder or _latest()
    if name is None:
        _show_run(folder, as_json)
        return
    story = find_walk(folder, name)
    click.echo(json.dumps(tell_data(story), indent=1) if as_json else tell(story, full))


def _show_run(folder: Path, as_json: bool) -> None:
    from dataforge.commands.run import show_table
    from dataforge.run.finish import ended_walks
    from dataforge.run.manifest import load_manifest
    from dataforge.run.report import Report
    from dataforge.run.trace import Outcome

    manifest = load_manifest(folder)
    ended = ended_walks(folder, manifest.fingerprint)
    written = folder / "report.json"
    report = Report.model_validate_json(written.read_bytes()) if written.is_file() else None
    if as_json:
        data = {
            "run": manifest.model_dump(mode="json"),
            "report": report.model_dump(mode="json") if report else None,
            "walks": {name: end.outcome for name, end in ended.items()},
        }
        click.echo(json.dumps(data, indent=1))
        return
    click.echo(f"{folder}: {manifest.graph} over {manifest.seed_count:,} seeds of {manifest.seeds}")
    for role, mark in manifest.roles.items():
        click.echo(f"  {role} = {mark.spec} ({mark.weights})")
    for line in (*manifest.overrides, *manifest.changes):
        click.echo(f"  {line}")
    click.echo("")
    if report is not None:
        show_table(report)
        click.echo("")
        for stage in report.funnel:
            lost = f", {stage.lost:,} lost there" if stage.lost else ""
            again = f", {stage.attempts:,} attempts" if stage.attempts > stage.reached else ""
            click.echo(f"{stage.reached:8,}  came to {stage.node}{lost}{again}")
        click.echo("")
    else:
        click.echo(f"not finished: {len(ended):,} of {manifest.walks:,} walks ended so far")
    for outcome in get_args(Outcome):
        for name, end in islice(ended.items(outcome), _LISTED):
            why = "" if outcome == "accepted" else f"  {end.node}: {end.reason}"
            click.echo(f"{outcome:8}  {name}  {end.seed_id}{why}")


def _latest() -> Path:
    runs = [path.parent for path in _RUNS.glob("*/run.json")]
    if not runs:
        raise InputError(f"there is no run in {_RUNS}/; name one with --run DIR")
    return max(runs, key=lambda run: (run / "run.json").stat().st_mtime_ns)
