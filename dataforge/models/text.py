"""Text that any file and any wire can carry, and JSON out of what a model wrote.

A model's JSON may escape half a character (`\\ud83d`), which parses into a text that no UTF-8 file
can hold; nothing gets past here with one. What a reply's JSON has to be is its reader's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

__all__ = ["clean", "clean_json", "reply_json"]

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def clean(text: str) -> str:
    """`text` with lone surrogates replaced, since no UTF-8 file can hold them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: object) -> object:
    """A JSON value with every text in it cleaned, keys included; anything else as it is."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean_json(key): clean_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(each) for each in value]
    return value


def reply_json(text: str) -> object:
    """The JSON value that a reply is, a code fence around it taken off, its texts cleaned.

    Raises ValueError, saying why, for a reply that is anything else, holds anything beside it, or
    gives a key twice: which of the two was meant?
    """
    fenced = _FENCE.fullmatch(text.strip())
    try:
        return clean_json(json.loads(fenced[1] if fenced else text, object_pairs_hook=_once))
    except RecursionError as error:
        raise ValueError(f"nested too deep: {error}") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)
