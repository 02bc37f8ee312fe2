"""A corpus in the forms that other trainers read: chat messages, ShareGPT, alpaca.

Rows go from the tables to one file, in the tables' order; nothing is filtered, split or shuffled
here. What a form cannot say is refused, not dropped: alpaca has no place for a conversation that
does not end with an answer. One thing it cannot say is left to its reader: that an example is not
to be learned; examples stand in its `history`, which a trainer can be told to mask.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dataforge.corpus.atomic import replace_file
from dataforge.corpus.record import Turn
from dataforge.corpus.store import read_calls, read_samples
from dataforge.errors import InputError, UsageError

__all__ = ["FORMATS", "Exported", "export"]

_NAMES = {"system": "system", "user": "human", "assistant": "gpt", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    samples: int
    calls: int


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    source: str
    """`sample`, or the node that made the call."""
    messages: tuple[Turn, ...]


def export(
    samples: Path,
    calls: Path | None,
    to: Path,
    style: str = "messages",
    *,
    every_call: bool = False,
) -> Exported:
    """Writes the samples, then the calls if given, to `to` (.jsonl or .parquet).

    `style` is one of `FORMATS`; `every_call` adds those that no one should learn from: of attempts
    that a later one replaced, and that ended otherwise than by themselves (cut, withheld, or in
    tool calls, which a table does not hold). The file is put in place whole.
    InputError for tables that cannot be read, UsageError for an unknown style or ending.
    """
    if style not in FORMATS:
        raise UsageError(f"--format {style}: there are {', '.join(FORMATS)}")
    if to.suffix not in _WRITERS:
        raise UsageError(f"{to}: name a file that ends in {' or '.join(_WRITERS)}")
    if not to.parent.is_dir():
        raise UsageError(f"{to}: there is no folder {to.parent}; make it first")
    shape, counted = FORMATS[style], {"samples": 0, "calls": 0}

    def rows() -> Iterator[Mapping[str, object]]:
        for kind, row in _rows(samples, calls, every_call):
            counted[kind] += 1
            yield {"id": row.id, "source": row.source, **shape(row)}

    _WRITERS[to.suffix](to, rows())
    return Exported(**counted)


def _rows(samples: Path, calls: Path | None, every_call: bool) -> Iterator[tuple[str, _Row]]:
    for sample in read_samples(samples):
        yield "samples", _Row(sample.id, "sample", sample.messages)
    for call in read_calls(calls) if calls is not None else ():
        if every_call or not (call.superseded or call.finish != "stop"):
            yield "calls", _Row(call.id, call.node, call.messages)


def _messages(row: _Row) -> dict[str, object]:
    turns = [{"role": turn.role, "content": turn.content, **_weight(turn)} for turn in row.messages]
    return {"messages": turns}


def _sharegpt(row: _Row) -> dict[str, object]:
    turns = [
        {"from": _NAMES[turn.role], "value": turn.content, **_weight(turn)} for turn in row.messages
    ]
    return {"conversations": turns}


def _weight(turn: Turn) -> dict[str, int]:
    """The key by which OpenAI's and Axolotl's formats take a turn out of the loss."""
    return {} if turn.weight else {"weight": 0}


def _alpaca(row: _Row) -> dict[str, object]:
    """The last question and answer; earlier ones as `history`, as LLaMA-Factory reads it."""
    system = "\n\n".join(turn.content for turn in row.messages if turn.role == "system")
    said = [turn for turn in row.messages if turn.role != "system"]
    if [turn.role for turn in said] != ["user", "assistant"] * (len(said) // 2) or not said:
        raise InputError(
            f"{row.id}: alpaca holds questions and answers in turn, and this one has "
            f"{', '.join(turn.role for turn in row.messages) or 'nothing'}; "
            "use --format messages or sharegpt"
        )
    pairs = [[said[at].content, said[at + 1].content] for at in range(0, len(said), 2)]
    *history, (instruction, output) = pairs
    return {
        "instruction": instruction,
        "input": "",
        "output": output,
        "system": system,
        "history": history,
    }


def _write_jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    def write(beside: Path) -> None:
        with beside.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    replace_file(path, write)


def _write_parquet(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    import polars as pl

    table = pl.DataFrame(list(rows), infer_schema_length=None)
    replace_file(path, table.write_parquet)


FORMATS: Mapping[str, Callable[[_Row], dict[str, object]]] = {
    "messages": _messages,
    "sharegpt": _sharegpt,
    "alpaca": _alpaca,
}
"""Style -> how a row is said in it."""

_WRITERS: Mapping[str, Callable[[Path, Iterable[Mapping[str, object]]], None]] = {
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}
