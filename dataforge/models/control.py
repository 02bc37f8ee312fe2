"""A model's control tokens, kept out of the text that is put to it.

llama.cpp reads `<|im_end|>` in a message as the end of the message, so a passage that holds one
could go on as another turn, in anybody's name. Which texts mean that is read from the GGUF file;
each is broken by a zero-width space after its first character, which a model hardly sees. Marks
that are no tokens of the model (`### User:`) are ordinary text and are left.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["breaker", "control_tokens"]

_ZERO_WIDTH_SPACE = "\u200b"

_TOKENS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_CONTROL, _USER_DEFINED = 3, 4
_MARKUP = re.compile(r"<.+>|\[.+\]", re.DOTALL)

_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
_NUMBERS[12] = "d"


def control_tokens(path: Path) -> tuple[str, ...]:
    """The texts that a GGUF file's tokenizer takes for control tokens or other markup, sorted.

    Raises ValueError for a file whose header cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            found = _Header(data).read({_TOKENS, _TYPES})
        except (struct.error, KeyError, UnicodeDecodeError) as error:
            raise ValueError(f"its header cannot be read ({error!r})") from None
    tokens, types = found.get(_TOKENS, []), found.get(_TYPES, [])
    kinds = zip(tokens, types, strict=False)
    return tuple(sorted(str(token) for token, kind in kinds if _steers(str(token), kind)))


def breaker(tokens: Iterable[str]) -> Callable[[str], str]:
    """What breaks every one of `tokens` in a text, so that none of them stands in it any more."""
    long = [re.escape(token) for token in tokens if len(token) > 1]
    if not long:
        return lambda text: text
    # A look ahead, since one token may begin within another.
    begins = re.compile(rf"(?=(?:{'|'.join(long)}))(.)", re.DOTALL)
    return lambda text: begins.sub(rf"\1{_ZERO_WIDTH_SPACE}", text)


def _steers(token: str, kind: object) -> bool:
    return kind == _CONTROL or (kind == _USER_DEFINED and bool(_MARKUP.fullmatch(token)))


class _Header:
    """Reads the key-value pairs at the beginning of a GGUF file (version 2 and later)."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 8

    def read(self, wanted: set[str]) -> dict[str, list[object]]:
        """The arrays under the wanted keys; those that are not there are left out."""
        _, pairs = self._take("Q"), self._take("Q")
        found: dict[str, list[object]] = {}
        for _ in range(int(pairs)):
            key, kind = self._text(), int(self._take("I"))
            value = self._value(kind)
            if key in wanted and isinstance(value, list):
                found[key] = value
            if found.keys() == wanted:
                break
        return found

    def _value(self, kind: int) -> object:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._take(_NUMBERS[kind])
        inner, count = int(self._take("I")), int(self._take("Q"))
        if inner in (_STRING, _ARRAY):
            return [self._value(inner) for _ in range(count)]
        form = f"<{count}{_NUMBERS[inner]}"
        values = list(struct.unpack_from(form, self._data, self._at))
        self._at += struct.calcsize(form)
        return values

    def _take(self, form: str) -> float:
        (value,) = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        found: float = value
        return found

    def _text(self) -> str:
        length = int(self._take("Q"))
        begin, self._at = self._at, self._at + length
        return self._data[begin : self._at].decode("utf-8", "replace")
