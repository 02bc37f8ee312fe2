"""Labelled pairs: answers to instructions with what is the matter with each, for measuring judges.

Pairs are JSON Lines, one object a line. `irrelevant` means about something else; `wrong` means on
the subject but false, or doing another task than the one asked. The split is by a hash of the
instruction, so that all answers to one instruction fall on the same side: what is tuned on `dev`
has seen no instruction of `test`.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from dataforge.errors import InputError

__all__ = ["FAULTS", "Fault", "Kind", "Pair", "Split", "read_pairs", "split_of"]

Fault = Literal["irrelevant", "truncated", "repetitive", "wrong"]
Kind = Literal["good", "irrelevant", "truncated", "repetitive", "wrong"]
Split = Literal["dev", "test"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
"""What may be the matter with an answer."""


class Pair(BaseModel):
    """An instruction, an answer to it and its label."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    instruction: str
    answer: str
    kind: Kind
    """`good`, or the one thing that is the matter with the answer."""
    split: Split
    """`dev` to choose by, `test` to report on."""
    mode: Literal["contextual", "standalone"]
    """Whether the text asked about stands inside the instruction."""
    origin: str
    """Where the answer came from: written by hand, cut from another, swapped in, or a model."""


def split_of(instruction: str) -> Split:
    """The side of the split on which every answer to `instruction` falls."""
    return "test" if blake2b(instruction.encode(), digest_size=8).digest()[0] % 2 else "dev"


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """The pairs of a JSON Lines file; `InputError` names the line that is wrong."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: labelled pairs cannot be read: {error}") from error
    found = [_pair(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line]
    if not found:
        raise InputError(f"{path}: holds no labelled pair; a judge is measured on at least one")
    return tuple(found)


def _pair(line: str, where: str) -> Pair:
    try:
        pair = Pair.model_validate_json(line)
    except ValidationError as error:
        what = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(f"{where}: not a labelled pair: {what}") from error
    if pair.split != split_of(pair.instruction):
        raise InputError(
            f"{where}: split is {pair.split!r} but the hash of its instruction says "
            f"{split_of(pair.instruction)!r}; write that, so that no instruction is on both sides"
        )
    return pair
