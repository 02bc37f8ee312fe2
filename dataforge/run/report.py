"""What came of a run: `report.json` for programs, `report.md` and a table for people.

The counts of walks are those on disk, so they cover every sitting; speed and time are the latest
sitting's, since adding up clocks of different machines means nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dataforge.corpus.atomic import replace_file
from dataforge.errors import CallOutcome
from dataforge.run.finish import Ended
from dataforge.run.funnel import Stage, funnel
from dataforge.run.manifest import Manifest, RoleMark
from dataforge.run.prices import Prices
from dataforge.run.spending import Total, Usage, rolled_up, total, usage
from dataforge.run.tally import Tally
from dataforge.run.trace import Outcome

__all__ = ["Ending", "Report", "cost", "make_report", "table", "write_report"]

_SKIPPED_SHOWN = 20


class Ending(BaseModel):
    """One way walks ended short of a sample."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    node: str
    reason: str
    count: int


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
    failures: dict[CallOutcome, int]
    """Times that an endpoint gave no reply in this sitting, by what came of it."""
    usage: tuple[Usage, ...]
    """Over the run's whole life."""
    funnel: tuple[Stage, ...]
    """Where the walks were lost."""
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
    def total(self) -> Total:
        """Sums over the run's whole life."""
        return total(self.usage)


def make_report(
    folder: Path,
    manifest: Manifest,
    ends: Callable[[], Iterable[Ended]],
    tally: Tally,
    *,
    prices: Prices,
    walks: int,
    pending: int,
    stopped: str,
    seconds: float,
    judge_card: str,
    skipped_seeds: Sequence[str],
    skipped_count: int,
) -> Report:
    """The report of the run in `folder` after a sitting of `seconds`.

    `ends`: the walks that count, gone through twice.
    """
    why = Counter((end.outcome, end.node, end.reason) for end in ends())
    outcomes: Counter[Outcome] = Counter()
    for (outcome, _, _), count in why.items():
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
                why.items(), key=lambda each: (-each[1], each[0])
            )
            if outcome != "accepted"
        ),
        new=tally.new,
        reused=tally.reused,
        tokens_per_s=tally.tokens_out / seconds if tally.new and seconds > 0 else None,
        seconds=seconds,
        failures=dict(tally.failures.most_common()),
        usage=usage(folder, {role: mark.spec for role, mark in manifest.roles.items()}, prices),
        funnel=funnel(folder, ends()),
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
    spent = report.total
    rows += [
        ("calls", f"{spent.calls:,}", f"reused {report.reused:,}, new {report.new:,}"),
        ("tokens in", f"{spent.tokens_in:,}", _part(spent.tokens_cached, "cached")),
        ("tokens out", f"{spent.tokens_out:,}", _part(spent.tokens_reasoning, "reasoning")),
        ("cost", *cost(spent)),
    ]
    if report.failures:
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in report.failures.items())
        rows.append(("no reply", f"{sum(report.failures.values()):,}", f"{told}; this sitting"))
    if report.tokens_per_s is not None:
        rows.append(("tokens/s", f"{report.tokens_per_s:,.1f}", "written, this sitting"))
    rows.append(("time", _spoken(report.seconds), "this sitting"))
    return rows


def cost(spent: Total) -> tuple[str, str]:
    """What calls cost, and what to know of it."""
    if not spent.unpriced:
        return f"${spent.usd:,.4f}", ""
    note = f"{spent.unpriced:,} calls of models without a price; --prices FILE gives them one"
    return (f"${spent.usd:,.4f}" if spent.usd else "unknown"), note


def _part(tokens: int, what: str) -> str:
    return f"{tokens:,} {what}" if tokens else ""


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
    lines += ["| node | role | model | calls | cut | tokens in | out | cost | p50 | p95 |"]
    lines += ["|---|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {u.node} | {u.role} | {u.model} | {u.calls:,} | {u.cut:,} | {u.tokens_in:,} "
        f"| {u.tokens_out:,} | {cost(total([u]))[0]} | {u.p50:.2f} s | {u.p95:.2f} s |"
        for u in report.usage
    ]
    for what, by in (("node", _node), ("role", _role), ("model", _model)):
        lines += ["", f"| {what} | calls | tokens in | cached | out | reasoning | cost |"]
        lines += ["|---|--:|--:|--:|--:|--:|--:|"]
        lines += [
            f"| {name} | {t.calls:,} | {t.tokens_in:,} | {t.tokens_cached:,} | {t.tokens_out:,} "
            f"| {t.tokens_reasoning:,} | {cost(t)[0]} |"
            for name, t in rolled_up(report.usage, by).items()
        ]
    lines += ["", "## Where walks were lost", ""]
    lines += ["| node | reached | lost | attempts | what came of them |", "|---|--:|--:|--:|---|"]
    lines += [
        f"| {stage.node} | {stage.reached:,} | {stage.lost:,} | {stage.attempts:,} "
        f"| {', '.join(f'{n:,} {outcome}' for outcome, n in stage.outcomes.items())} |"
        for stage in report.funnel
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


def _node(usage: Usage) -> str:
    return usage.node


def _role(usage: Usage) -> str:
    return usage.role


def _model(usage: Usage) -> str:
    return usage.model


def _spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"
