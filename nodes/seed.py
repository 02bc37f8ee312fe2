"""The gate every passage passes first: its length is a precondition, its form is checked here.

The checks are cheap and language-neutral, and meant to catch what no model should be asked to
retell: text decoded wrongly, markup, menus, loops. They do not judge whether a passage is worth it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated

from annotated_types import MaxLen, MinLen

from dataforge import Struct, Unmet, node
from dataforge.verifiers.truncation import truncation


class Passage(Struct):
    """What a graph over passages starts from."""

    passage: Annotated[str, MinLen(500), MaxLen(6000)]


class Nothing(Struct):
    """No effect: the gate lets a record through or it does not."""


@node
async def gate(seen: Passage) -> Nothing:
    """Refuses passages that are not running text."""
    passage = seen.passage
    if damaged := re.findall(r"\ufffd|[ÃÂ][\x80-\xbf]|â€", passage):
        raise Unmet("text decoded wrongly", f"{damaged[0]!r} and {len(damaged) - 1} more")
    if control := re.search(r"<\|\w+\|>", passage):
        raise Unmet("control tokens", f"{control[0]!r}, which a chat model takes for its own")
    visible = [character for character in passage if not character.isspace()]
    if len(visible) < 400:
        raise Unmet("mostly blank", f"{len(visible)} visible characters")
    letters = sum(character.isalpha() for character in visible) / len(visible)
    if letters < 0.6:
        raise Unmet("mostly markup or numbers", f"{letters:.0%} letters")
    if (longest := max(map(len, re.findall(r"[!-~]+", passage)), default=0)) > 120:
        raise Unmet("not words", f"a run of {longest} characters without a space")
    if len(re.findall(r"[|\u203a\xbb\u2022\xb7]", passage)) > len(passage) / 60:
        raise Unmet("a menu", "more separators than a text has")
    words = Counter(re.findall(r"\w+", passage.casefold()))
    word, times = words.most_common(1)[0]
    if times > max(20, 0.2 * words.total()):
        raise Unmet("one word over and over", f"{word!r} {times} times")
    sentences = [part.strip().casefold() for part in re.split(r"[.!?。\n]+", passage)]
    sentences = [sentence for sentence in sentences if len(sentence) > 15]
    if not sentences:
        raise Unmet("no sentences", "a menu or a list of words")
    repeated = 1 - len(Counter(sentences)) / len(sentences)
    if repeated > 0.3:
        raise Unmet("repeats itself", f"{repeated:.0%} of its sentences stand there before")
    if passage[0].islower() and truncation(passage).cut:
        raise Unmet("a fragment", f"begins with {passage[:20]!r} and is cut at its end")
    return Nothing()
