"""The live line of a run: a bar on a terminal, now and then a plain line elsewhere.

Written to stderr, so that what a command prints stays clean. It watches a run and changes nothing.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from dataforge.run.events import CallEnded, Event, RunBegan, Said, WalkEnded
from dataforge.run.tally import Tally

__all__ = ["Live"]

_EVERY = 10.0
"""Least seconds between two plain lines."""


class Live:
    """Shows a run while it goes on; use it in a `with`, and as the run's watcher."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._began = 0.0
        self._last = 0.0
        console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=12),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[counts]}"),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=1, counts="", visible=False)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def __call__(self, event: Event) -> None:
        """Shows what an event changes."""
        self._tally.see(event)
        if isinstance(event, Said):
            self.say(event.text)
        elif isinstance(event, RunBegan):
            self._began = time.monotonic()
            earlier = event.accepted + event.rejected
            if earlier:
                self.say(f"continuing: {earlier:,} of {event.walks:,} walks ended before")
        if self._bar is not None:
            self._bar.update(
                self._task,
                total=self._tally.walks,
                completed=self._ended(),
                counts=self._counts(),
                visible=True,
            )
        elif isinstance(event, WalkEnded | CallEnded):
            self._plain()

    def _plain(self) -> None:
        now = time.monotonic()
        if now - self._last >= _EVERY or self._ended() == self._tally.walks > 0:
            self._last = now
            walked = f"{self._ended():,}/{self._tally.walks:,} walks"
            print(f"{walked}  {self._counts()}", file=sys.stderr, flush=True)

    def _ended(self) -> int:
        return self._tally.earlier.total() + self._tally.now.total()

    def _counts(self) -> str:
        tally = self._tally
        seconds = time.monotonic() - self._began
        speed = tally.tokens_out / seconds if seconds > 0 else 0.0
        parts = [f"accepted {tally.ended('accepted'):,}", f"rejected {tally.ended('rejected'):,}"]
        if tally.now["failed"]:
            parts.append(f"failed {tally.now['failed']:,}")
        parts += [f"calls {tally.new + tally.reused:,}", f"{speed:,.0f} tokens/s"]
        if tally.latency.count:
            parts.append(f"p50 {tally.latency.percentile(0.5):.2f} s")
        if tally.usd:
            parts.append(f"${tally.usd:,.2f}{'+' if tally.unpriced else ''}")
        return "  ".join(parts)
