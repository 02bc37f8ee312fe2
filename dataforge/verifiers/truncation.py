"""Whether a reply stops before its end: mid-word, mid-sentence, in a list item or a code fence.

A model that reports its finish reason needs no guess; this is for replies without one. The guess is
graded, because a full stop is not the only way to end: titles, verse, list items, tables, keywords,
signatures and single phrases rightly end without one, so a bare end counts against a reply only as
far as the reply's own habit (its other sentences, items, stanzas) says that it should have had one.
A reply cut exactly between two sentences or list items shows nothing and is not seen. The words
that cannot end a sentence are English; other languages are judged by punctuation alone.
"""

# ruff: noqa: RUF001  (typographic quotes and dashes are what is looked for)

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dataforge.verifiers.words import words

__all__ = ["Truncation", "truncation"]

_CLOSERS = r"""["'”’»)\]}*_`~>|]*"""
_STOPPED = re.compile(r"(?:[.!?…。！？؟।]|[.!?]{2,})\s*" + _CLOSERS + r"\s*$")
_ITEM = re.compile(r"\s*(?:[-*•+–]|\(?(?:\d{1,3}|[a-z])[.)]|\(?[A-Z]\))(?:\s+|$)")
_GREETING = re.compile(r"(?:Subject:.*\n+)?\s*(?:Dear|Hi|Hello|Hey)\b.*,?\n")
_HEADING = re.compile(r"\s*#{1,6}\s")
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_LABEL = re.compile(r"\s*(?:\*\*)?[A-Z][\w ]{0,30}:")
_NEVER_LAST = frozenset(
    re.findall(
        r"\w+",
        "a an the and or but nor of from with into than because whose which while although if "
        "unless my your our their its every each per to for by at as between through during i he "
        "she we they is are was were be been has have had will would can could should may might "
        "must",
    )
)
_SUFFIXES = frozenset(
    re.findall(
        r"\w+",
        "s es ed d r er ers ing ly y n en al ion ions ity ness less ful ish ism ist able",
    )
)
_SHORT_LINE = 12
"""Words: verse, items, titles and signatures are rarely longer."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """How a text ends."""

    doubt: float
    """In [0, 1]: 0 surely finished, 1 surely cut; the grades are set by hand, not probabilities."""
    why: str
    """What shows that it is cut, to be read after "the text"; empty when nothing does."""
    span: tuple[int, int]
    """The unfinished end in the text; (0, 0) when nothing shows that it is cut."""

    @property
    def cut(self) -> bool:
        """Whether the text is more likely cut than not."""
        return self.doubt >= 0.5


def truncation(text: str, context: str = "") -> Truncation:
    """How `text` ends; `context`, such as its instruction, helps to see a word broken off."""
    body = text.rstrip()
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines:
        return Truncation(0.0, "", (0, 0))
    doubt, why = _ending(body, lines, context)
    last = lines[-1].strip()
    return Truncation(doubt, why, (len(body) - len(last), len(body)) if why else (0, 0))


def _ending(body: str, lines: Sequence[str], context: str) -> tuple[float, str]:
    """The doubt and its reason, from the surest sign to the weakest."""
    last = lines[-1].strip()
    if len(_FENCE.findall(body)) % 2:
        return 1.0, "ends inside a code block"
    if _FENCE.match(last):
        return 0.0, ""
    if last.startswith("|"):
        return _table(lines)
    item = _ITEM.match(last)
    bare = last[item.end() :] if item else last
    if item and not words(bare):
        return 1.0, "ends with an empty list item"
    if _HEADING.match(last) and len(lines) > 1:
        return 0.9, "ends with a heading and nothing under it"
    if _open_bracket(last) or bare.count("**") % 2 or bare.count("`") % 2:
        return 0.9, "ends inside a bracket or emphasis"
    if _STOPPED.search(last):
        return 0.0, ""
    if last.endswith(":"):
        return 0.9, "ends with a colon and nothing after it"
    if last.endswith((",", ";", "-", "–", "(", "/", "=", "+", "&")):
        return 0.9, "ends in the middle of a sentence"
    tail = words(last)
    if not tail or tail[-1].end < len(last.rstrip("\"'”’»)]}*_`~>")):
        # An emoji, a currency sign, a closing tag: an end of its own kind.
        return 0.1, ""
    if tail[-1].folded in _NEVER_LAST and len(tail) > 1:
        return 0.95, "ends in the middle of a sentence"
    if _broken_word(body, context):
        return 0.9, "ends in the middle of a word"
    return _habit(body, lines)


def _table(lines: Sequence[str]) -> tuple[float, str]:
    rows = [line.strip() for line in lines if line.strip().startswith("|")]
    if rows[-1].endswith("|") and rows[-1].count("|") >= rows[0].count("|") and len(rows) != 2:
        return 0.0, ""
    return 0.95, "ends in the middle of a table"


def _open_bracket(last: str) -> bool:
    return any(last.count(a) > last.count(b) for a, b in (("(", ")"), ("[", "]"), ("{", "}")))


def _broken_word(body: str, context: str) -> bool:
    """The last word is the beginning of a longer word used before, and itself used nowhere."""
    *before, last = words(body)
    if last.end < len(body) or len(last.folded) < 2 or last.folded.isdigit():
        return False
    known = {word.folded for word in words(context)} | {word.folded for word in before}
    if last.folded in known:
        return False
    longer = (word for word in known if word.startswith(last.folded))
    # "cat" beside "cats" is a word in its own right.
    return any(word[len(last.folded) :] not in _SUFFIXES for word in longer)


def _habit(body: str, lines: Sequence[str]) -> tuple[float, str]:
    """A bare end, weighed by how the rest of the text ends its parts."""
    last = lines[-1].strip()
    size = len(words(last))
    why = "ends in the middle of a sentence"
    if _is_signature(body, lines):
        return 0.05, ""
    if _ITEM.match(last):
        return _against(_parts(lines[:-1], _ITEM), size, "ends in the middle of a list item")
    if _LABEL.match(last) and len(lines) > 1:
        return _against(_parts(lines[:-1], _LABEL), size, why)
    if _is_verse(lines):
        return _verse_end(body, lines)
    if _is_keywords(last):
        return 0.1, ""
    inner = re.search(r"[.!?…][\"'”’»)]*\s", last)
    if inner:
        return 0.95, why
    if len(lines) == 1:
        # A phrase by itself: a title, a name, a one-line answer.
        return (0.1, "") if size <= _SHORT_LINE else (0.4 if size <= 20 else 0.7, why)
    stopped = sum(bool(_STOPPED.search(line.strip())) for line in lines[:-1])
    return (0.85, why) if 2 * stopped >= len(lines) - 1 else (0.3, why)


def _parts(lines: Sequence[str], begins: re.Pattern[str]) -> list[str]:
    return [line.strip() for line in lines if begins.match(line)]


def _against(others: Sequence[str], size: int, why: str) -> tuple[float, str]:
    """A last part of `size` words without a stop, beside the other parts of its kind."""
    stopped = sum(bool(_STOPPED.search(other)) for other in others)
    if others and 2 * stopped > len(others):
        # Many writers leave the stop off the last of a list; long lists of sentences rarely.
        return 0.8, why
    return (0.15, "") if size <= 2 * _SHORT_LINE else (0.5, why)


def _is_signature(body: str, lines: Sequence[str]) -> bool:
    """A short capitalised line after `Best,`, or by itself at the end of a letter."""
    last = lines[-1].strip()
    if len(lines) < 3 or len(words(last)) > 4 or not last[:1].isupper():
        return False
    closing = lines[-2].strip()
    if closing.endswith(",") and len(words(closing)) <= 4:
        return True
    alone = body.endswith(f"\n\n{last}")
    return alone and bool(_STOPPED.search(closing)) and bool(_GREETING.match(body))


def _is_verse(lines: Sequence[str]) -> bool:
    """At least three short lines, most of them without a full stop."""
    sizes = [len(words(line)) for line in lines]
    stopped = sum(bool(_STOPPED.search(line.strip())) for line in lines[:-1])
    return len(lines) >= 3 and max(sizes) <= _SHORT_LINE and 2 * stopped <= len(lines) - 1


def _verse_end(body: str, lines: Sequence[str]) -> tuple[float, str]:
    """Verse ends bare as it likes, unless its other stanzas end with a stop."""
    stanzas = [part.rstrip() for part in re.split(r"\n\s*\n", body) if part.strip()]
    others = [bool(_STOPPED.search(stanza)) for stanza in stanzas[:-1]]
    if others and all(others):
        return 0.6, "ends in the middle of a stanza"
    usual = sorted(len(line.strip()) for line in lines[:-1])[(len(lines) - 1) // 2]
    return (0.35, "ends on a short line") if 2 * len(lines[-1].strip()) < usual else (0.15, "")


def _is_keywords(last: str) -> bool:
    """At least three short phrases between commas."""
    pieces = [words(piece) for piece in re.split(r"[,;、，]", last)]
    return len(pieces) >= 3 and all(1 <= len(piece) <= 4 for piece in pieces)
