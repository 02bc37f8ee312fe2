"""The words and sentences of a text, with where they stand.

Counts in the verifiers are counts of these words, so what a word is decides what a run of eight
words is. Words are compared folded (case, width and typographic apostrophes do not matter). Scripts
written without spaces (Chinese, Japanese, Thai, Khmer, Lao, Burmese) count one word a character,
which needs no dictionary and makes a run there shorter in meaning than in English. This does not
lemmatise, and a sentence here is what typography shows, so an abbreviation may split one.
"""

# ruff: noqa: RUF001  (typographic quotes and dashes are what is looked for)

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Word", "sentences", "words"]

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "＇": "'"})
# Blocks whose scripts put no space between words.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0xF900, 0xFAFF),  # Han, compatibility
    (0x20000, 0x323AF),  # Han, later extensions
)
# An end mark, its closing quotes, brackets and emphasis, then a space; or an East Asian end mark.
_END = re.compile(r"""[.!?…]+["'”’»)\]*_]*(?=\s)|[。！？]+[”’」』）]*|\n+""")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text."""

    folded: str
    """What is compared: case-folded, NFKC, with straight apostrophes."""
    start: int
    """Offset of the first character."""
    end: int
    """Offset after the last character."""


def words(text: str) -> tuple[Word, ...]:
    """The words of a text in order; punctuation, symbols and spaces are dropped."""
    if text.isascii():
        return tuple(Word(m[0].lower(), m.start(), m.end()) for m in _ASCII_WORD.finditer(text))
    spans = _spans(text.translate(_APOSTROPHES))
    return tuple(Word(_fold(text[start:end]), start, end) for start, end in spans)


def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Spans of the sentences and lines that hold at least one word, without outer space."""
    edges = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    return tuple(
        (start, end)
        for start, end in (_trimmed(text, *pair) for pair in pairwise(edges))
        if any(char.isalnum() for char in text[start:end])
    )


def _fold(piece: str) -> str:
    return unicodedata.normalize("NFKC", piece.translate(_APOSTROPHES)).casefold()


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of words in any script; marks stay with the letter they modify."""
    start: int | None = None
    for at, char in enumerate(text):
        if unicodedata.category(char)[0] == "M":
            continue
        inner = char == "'" and start is not None and text[at + 1 : at + 2].isalnum()
        if inner or (char.isalnum() and not _is_unspaced(char)):
            # A letter after an unspaced character begins a word of its own.
            if start is not None and _is_unspaced(text[start]):
                yield start, at
                start = at
            start = at if start is None else start
            continue
        if start is not None:
            yield start, at
        start = at if char.isalnum() else None
    if start is not None:
        yield start, len(text)


def _is_unspaced(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in _UNSPACED)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
