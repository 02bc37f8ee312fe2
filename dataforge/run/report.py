"""What came of a run: `report.json` for programs, `report.md` and a table for people.

The counts of walks are those on disk, so they cover every sitting; speed and time are the latest
sitting's, since adding up clocks of different machines means nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dataforge.corpus.atomic import replace_file
from dataforge.run.log import parse, read_lines
from dataforge.run.logs import JOURNAL, part_names
from dataforge.run.manifest import Manifest, RoleMark
from dataforge.run.tally import Tally
from dataforge.run.trace import Outcome

__all__ = ["Ending", "Report", "Usage", "make_report", "table", "usage", "write_report"]

_SKIPPED_SHOWN = 20


class Ending(BaseModel):
    """One way walks ended short of a sample."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    node: str
    reason: str
    count: int


class Usage(BaseModel):
    """What one node asked of one role, over the run's whole life."""

    model_config = ConfigDict(frozen=True)

    node: str
    role: str
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    """Sum of its calls' times, which overlap."""


class Report(BaseModel):
    """What came of a run."""

    model_config = ConfigDict(frozen=True)

    graph: str
    folder: str
    walks: int
    accepted: int
    rejected: int
    failed: int
    pending: int
    """Not walked yet, because the run was stopped."""
    stopped: str = ""
    """What stopped it, in words, where that was a budget."""
    endings: tuple[Ending, ...]
    """Most frequent first."""
    new: int
    """Calls a model answered in this sitting."""
    reused: int
    """Calls the journal answered in this sitting."""
    tokens_per_s: float | None
    """New tokens written a second of this sitting; None without a new call."""
    seconds: float
    """Of this sitting."""
    usage: tuple[Usage, ...]
    roles: dict[str, RoleMark]
    judge_card: str
    """What is known of how far the judge can be trusted."""
    overrides: tuple[str, ...]
    changes: tuple[str, ...]
    skipped_seeds: tuple[str, ...]
    """Lines of the seeds that could not be used, with place and reason; the first of many."""
    skipped_count: int
    """How many there were in all."""

    @property
    def calls(self) -> int:
        """Model calls over the run's whole life."""
        return sum(each.calls for each in self.usage)

    @property
    def tokens_in(self) -> int:
        """Tokens read over the run's whole life."""
        return sum(each.tokens_in for each in self.usage)

    @property
    def tokens_out(self) -> int:
        """Tokens written over the run's whole life."""
        return sum(each.tokens_out for each in self.usage)


class _Spent(BaseModel):
    model_config = ConfigDict(extra="ignore")

    class Reply(BaseModel):
        tokens_in: int
        tokens_out: int

    kind: str
    node: str
    role: str
    seconds: float
    reply: Reply | None = None


def usage(folder: Path) -> tuple[Usage, ...]:
    """What each node asked of each role, by node and role, from a run's journals."""
    sums: dict[tuple[str, str], list[float]] = {}
    for spent in _spent(folder):
        if spent.reply is not None:
            added = (1, spent.reply.tokens_in, spent.reply.tokens_out, spent.seconds)
            kept = sums.setdefault((spent.node, spent.role), [0, 0, 0, 0.0])
            kept[:] = [was + more for was, more in zip(kept, added, strict=True)]
    return tuple(
        Usage(
            node=node,
            role=role,
            calls=int(calls),
            tokens_in=int(tokens_in),
            tokens_out=int(tokens_out),
            seconds=seconds,
        )
        for (node, role), (calls, tokens_in, tokens_out, seconds) in sorted(sums.items())
    )


def _spent(folder: Path) -> Iterator[_Spent]:
    for part in part_names(folder):
        journal = folder / part / JOURNAL
        for offset, line in read_lines(journal) if journal.exists() else ():
            yield parse(_Spent, line, str(journal), offset)


def make_report(
    folder: Path,
    manifest: Manifest,
    ends: Counter[tuple[Outcome, str, str]],
    tally: Tally,
    *,
    walks: int,
    pending: int,
    stopped: str,
    seconds: float,
    judge_card: str,
    skipped_seeds: Sequence[str],
    skipped_count: int,
) -> Report:
    """The report of the run in `folder` after a sitting of `seconds`.

    `ends`: how many walks ended how, at which node and why.
    """
    outcomes: Counter[Outcome] = Counter()
    for (outcome, _, _), count in ends.items():
        outcomes[outcome] += count
    return Report(
        graph=manifest.graph,
        folder=str(folder),
        walks=walks,
        accepted=outcomes["accepted"],
        rejected=outcomes["rejected"],
        failed=outcomes["failed"],
        pending=pending,
        stopped=stopped,
        endings=tuple(
            Ending(outcome=outcome, node=node, reason=reason, count=count)
            for (outcome, node, reason), count in sorted(
                ends.items(), key=lambda each: (-each[1], each[0])
            )
            if outcome != "accepted"
        ),
        new=tally.new,
        reused=tally.reused,
        tokens_per_s=tally.tokens_out / seconds if tally.new and seconds > 0 else None,
        seconds=seconds,
        usage=usage(folder),
        roles=manifest.roles,
        judge_card=judge_card,
        overrides=manifest.overrides,
        changes=manifest.changes,
        skipped_seeds=tuple(skipped_seeds),
        skipped_count=skipped_count,
    )


def write_report(report: Report, folder: Path) -> None:
    """Writes `report.json` and `report.md`."""
    as_json = report.model_dump_json(indent=2) + "\n"
    as_text = _markdown(report)
    replace_file(folder / "report.json", lambda beside: beside.write_text(as_json, "utf-8"))
    replace_file(folder / "report.md", lambda beside: beside.write_text(as_text, "utf-8"))


def table(report: Report) -> list[tuple[str, str, str]]:
    """Rows of what, how many, and a note, for a terminal or a page."""
    rows = [("walks", f"{report.walks:,}", "asked for")]
    for outcome in ("accepted", "rejected", "failed"):
        rows.append((outcome, f"{getattr(report, outcome):,}", _NOTES[outcome]))
        rows += [
            ("", f"{ending.count:,}", f"{ending.node}: {ending.reason}")
            for ending in report.endings
            if ending.outcome == outcome
        ]
    if report.pending:
        note = f"{report.stopped}; " if report.stopped else ""
        rows.append(("pending", f"{report.pending:,}", f"{note}the same command continues"))
    rows += [
        ("calls", f"{report.calls:,}", f"reused {report.reused:,}, new {report.new:,}"),
        ("tokens in", f"{report.tokens_in:,}", ""),
        ("tokens out", f"{report.tokens_out:,}", ""),
    ]
    if report.tokens_per_s is not None:
        rows.append(("tokens/s", f"{report.tokens_per_s:,.1f}", "written, this sitting"))
    rows.append(("time", _spoken(report.seconds), "this sitting"))
    return rows


_NOTES = {
    "accepted": "in the corpus",
    "rejected": "by which node, and why",
    "failed": "tried again by the same command",
}


def _markdown(report: Report) -> str:
    lines = [f"# Run of {report.graph}", "", "| | | |", "|---|--:|---|"]
    lines += [f"| {what} | {count} | {note} |" for what, count, note in table(report)]
    lines += ["", "## Models", "", "| role | model | weights |", "|---|---|---|"]
    lines += [f"| {role} | {m.spec} | {m.weights} |" for role, m in report.roles.items()]
    lines += ["", "## Calls", ""]
    lines += ["| node | role | calls | tokens in | tokens out |", "|---|---|--:|--:|--:|"]
    lines += [
        f"| {u.node} | {u.role} | {u.calls:,} | {u.tokens_in:,} | {u.tokens_out:,} |"
        for u in report.usage
    ]
    if report.judge_card:
        lines += ["", "## How far the judge can be trusted", "", report.judge_card.rstrip()]
    if report.overrides or report.changes:
        lines += ["", "## Rules set aside and changes accepted", ""]
        lines += [f"- {line}" for line in report.overrides + report.changes]
    if report.skipped_count:
        lines += ["", f"## Seeds that could not be used: {report.skipped_count:,}", ""]
        lines += [f"- {line}" for line in report.skipped_seeds[:_SKIPPED_SHOWN]]
        if report.skipped_count > _SKIPPED_SHOWN:
            lines.append("- … more of them are in report.json")
    return "\n".join(lines) + "\n"


def _spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"
