"""Reads conversations to pack: a run directory, or a Parquet or JSONL file with `messages`.

A run gives its final samples and, unless told otherwise, every model call behind them whose reply
was used and whole. A line or row that is no conversation is left out, and its place and reason are
kept for the report; the rest goes on. One conversation is in memory at a time. Nothing is judged
here but form: whether a sample can be trained on is the tokenizer's to say.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from dataforge.errors import InputError
from dataforge.packing.tokenizer import Turn

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Conversation", "Refused", "read_conversations", "texts"]

_ROLES = ("system", "user", "assistant", "tool")

_BATCH = 2_000
"""Parquet rows turned into Python objects at a time."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one sample says."""

    id: str
    """Unique within what is packed together."""
    turns: tuple[Turn, ...]
    """At least one, each with a role and a content; `weight` 0 takes one out of the loss."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A sample that is not packed."""

    id: str
    """The sample's, or the file and line that hold no sample."""
    reason: str
    """A short, countable phrase."""
    detail: str = ""
    """What was found this time."""


def read_conversations(source: Path, *, calls: bool = True) -> Iterator[Conversation | Refused]:
    """The conversations of `source` in their order, and what is there but is none.

    `calls` adds the calls of a run directory; a file holds what it holds. InputError at once, not
    at the first sample, when `source` cannot be read.
    """
    if source.is_dir():
        corpus = source / "corpus.parquet"
        if not corpus.is_file():
            raise InputError(
                f"{source}: no finished run lies here (corpus.parquet is missing). "
                f"`dataforge run` makes it; a .parquet or .jsonl file with messages packs too"
            )
        return _run(corpus, source / "calls.parquet" if calls else None)
    if not source.is_file():
        raise InputError(f"{source}: there is no such file or directory to pack")
    if source.suffix == ".parquet":
        return _parquet(source)
    if source.suffix == ".jsonl":
        return _jsonl(source)
    raise InputError(
        f"{source}: cannot be packed; give a run directory, a .parquet or a .jsonl file"
    )


def texts(value: object) -> Iterator[str]:
    """Every text within a value as JSON has them, keys too, however deep."""
    # No recursion: a line may nest as deep as its parser follows.
    pending = [value]
    while pending:
        match pending.pop():
            case str(text):
                yield text
            case Mapping() as inner:
                pending += [*inner.keys(), *inner.values()]
            case Sequence() as inner:
                pending += inner


def _run(corpus: Path, calls: Path | None) -> Iterator[Conversation | Refused]:
    # Imported here: `--help` must not wait for it. The store refuses tables of another format,
    # which may not say what is not to be learned.
    from dataforge.corpus.store import scan_calls, scan_samples

    samples = _rows(scan_samples(corpus), corpus)
    if calls is None:
        return samples
    if not calls.is_file():
        raise InputError(f"{calls} is missing; pack the samples alone with --no-calls")
    return chain(samples, _rows(scan_calls(calls), calls))


def _parquet(path: Path) -> Iterator[Conversation | Refused]:
    # Imported here: `--help` must not wait for it.
    import polars as pl

    try:
        table = pl.scan_parquet(path)
        columns = table.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: not a Parquet file that can be read ({error})") from error
    if "messages" not in columns:
        raise InputError(
            f"{path}: has no column `messages` (it has {', '.join(columns)}); it must hold lists "
            f"of turns, each with a role and a content"
        )
    return _rows(table, path)


def _rows(table: pl.LazyFrame, path: Path) -> Iterator[Conversation | Refused]:
    import polars as pl

    columns = table.collect_schema().names()
    if "superseded" in columns:
        table = table.filter(~pl.col("superseded"))
    wanted = [name for name in ("id", "messages", "finish") if name in columns]
    rows = table.select(wanted).collect().iter_rows(named=True, buffer_size=_BATCH)
    return (_conversation(row, f"{path.name}:{number}") for number, row in enumerate(rows))


def _jsonl(path: Path) -> Iterator[Conversation | Refused]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                row = json.loads(line.decode())
            except UnicodeDecodeError as error:
                yield Refused(where, "not UTF-8", str(error))
            except (ValueError, RecursionError) as error:
                yield Refused(where, "not JSON", str(error))
            else:
                yield _conversation(row, where)


def _conversation(row: object, where: str) -> Conversation | Refused:
    if not isinstance(row, Mapping):
        return Refused(where, "not an object with messages")
    identity = row.get("id")
    name = str(identity) if isinstance(identity, str | int) and _is_unicode(identity) else where
    messages = row.get("messages")
    unfit = _unfit(row.get("finish"), messages)
    if unfit:
        return Refused(name, unfit)
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        return Refused(name, "no messages", f"`messages` is {_short(messages)}")
    turns: list[Turn] = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            return Refused(
                name,
                "malformed message",
                f"message {number} is {_short(message)}; a role is one of {', '.join(_ROLES)}",
            )
        # A column of structs spells out every key any row has; what a turn lacks is None there.
        turn = {str(key): value for key, value in message.items() if value is not None}
        content = turn.setdefault("content", "")
        if not isinstance(content, str) or not _is_unicode(turn):
            what = "half a character" if isinstance(content, str) else "no text as its content"
            return Refused(name, "malformed message", f"message {number} has {what}")
        weight = turn.pop("weight", 1)
        if weight not in (0, 1):
            said = f"the weight of message {number} is {_short(weight)}, neither 0 nor 1"
            return Refused(name, "malformed message", said)
        if weight == 0:
            turn["weight"] = 0
        turns.append(turn)
    return Conversation(name, tuple(turns))


def _unfit(finish: object, messages: object) -> str:
    """Why nobody should learn from a reply that ended this way; empty where one may."""
    if finish == "length":
        return "reply cut at max_tokens"
    if finish == "refused":
        return "reply withheld"
    last = messages[-1] if isinstance(messages, list | tuple) and messages else None
    if finish == "tools" and not (isinstance(last, Mapping) and last.get("tool_calls")):
        return "reply without the tool calls it ended in"
    return ""


def _is_unicode(value: object) -> bool:
    """Holds no half of a surrogate pair, which no tokenizer and no file takes."""
    try:
        for text in texts(value):
            text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: object) -> str:
    # Follows only a few levels, so that a deeply nested value can be shown too.
    said = reprlib.repr(value)
    return said if len(said) <= 60 else f"{said[:57]}…"
