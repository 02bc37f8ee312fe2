"""What a prompt node does when it runs: fill in, ask once, check, and write its fields.

Every key is settled and every hole checked before (`prompt_table.py`), so what can go wrong here is
the reply: empty, cut, quoting what it must not, or not what was promised. Each is `Unmet`, for the
run to try again. One call a node; what needs two calls, a choice or any other logic is a Python
node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from dataforge.errors import Unmet
from dataforge.library.template import Template
from dataforge.models.base import Message, Model, Reply
from dataforge.models.text import reply_json
from dataforge.plan.struct import Struct, facts, fill, view
from dataforge.verifiers.quotation import longest_shared_run

__all__ = ["QUOTED_WORDS", "Prompt", "opened_by", "whole_sentences"]

QUOTED_WORDS = 8
"""A run of this many words shared with an `unquoted` field or an example is a quotation."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a prompt node runs: fills its templates, asks its role once, checks the reply."""

    where: str
    role: str
    makes: type[Struct]
    constants: Mapping[str, str]
    """`name` and `variant`: words that no setting changes."""
    words: frozenset[str]
    """Settings that templates may name."""
    system: str
    prompt: str
    examples: tuple[tuple[str, str], ...]
    """Earlier turns that show what is wanted: (asked, answered), before the prompt.

    A reply that quotes one is refused: small models copy what they are shown.
    """
    append: Mapping[str, str]
    """Optional field -> what the prompt gains when it is there."""
    writes: Mapping[str, str]
    literals: Mapping[str, object]
    """Fields with one value that the file settles."""
    openings: tuple[str, ...]
    """If any: how a reply may begin. It comes as JSON, so that decoding can be held to it."""
    unquoted: tuple[str, ...]
    truncated: str
    """What becomes of a reply cut at max_tokens: refuse, allow or trim."""
    writes_truncated: str
    sure: frozenset[str]
    """Fields of the record that are always there, and so may stand in any template."""

    async def __call__(self, seen: Struct, **given: object) -> Struct:
        """One reply, as the fields promised; Unmet for a reply that cannot keep the promise."""
        fields = facts(seen)
        words = self._words(given)

        def filled(text: str, **more: str) -> str:
            return _ready(text, words, self.where).fill({**fields, **more})

        reply = await cast("Model", given[self.role]).chat(
            self._messages(fields, filled),
            temperature=cast("float", given["temperature"]),
            top_p=cast("float", given["top_p"]),
            max_tokens=cast("int", given["max_tokens"]),
            schema=opened_by(self.openings) if self.openings else None,
        )
        text = self._accepted(reply, fields)
        for _, answered in self.examples:
            self._refuse_quotation(text, filled(answered), "quotes an example")
        made = self.written(seen, text, **given)
        if self.writes_truncated:
            made[self.writes_truncated] = reply.finish == "length"
        return fill(self.makes, made)

    def written(self, seen: Struct, reply: str, **given: object) -> dict[str, object]:
        """The fields that it makes of a reply's text, unchecked."""
        fields, words = {**facts(seen), "reply": reply}, self._words(given)
        filled = {
            field: _ready(text, words, self.where).fill(fields)
            for field, text in self.writes.items()
        }
        return {**self.literals, **filled}

    def _messages(self, fields: Mapping[str, object], filled: Callable[..., str]) -> list[Message]:
        messages = [Message("system", filled(self.system))] if self.system else []
        for asked, answered in self.examples:
            answer = filled(answered)
            if self.openings:
                answer = json.dumps({"reply": answer}, ensure_ascii=False)
            messages += [Message("user", filled(asked)), Message("assistant", answer)]
        added = [filled(each) for field, each in self.append.items() if field in fields]
        return [*messages, Message("user", "".join((filled(self.prompt), *added)))]

    def _accepted(self, reply: Reply, fields: Mapping[str, object]) -> str:
        text = reply.text.strip()
        if reply.finish == "refused":
            withheld = reply.refusal or "by the endpoint, with no reason given"
            raise Unmet("reply withheld", withheld, "refused")
        if reply.finish == "tools":
            unasked = "which the prompt asked for none of"
            raise Unmet("reply ended in tool calls", unasked, "unparsable")
        if reply.finish == "length":
            if self.truncated == "refuse":
                after = f"after {reply.tokens_out} tokens"
                raise Unmet("reply cut at max_tokens", after, "truncated")
            if self.truncated == "trim":
                text = whole_sentences(text)
                if not text:
                    before = "before the end of its first sentence"
                    raise Unmet("reply cut at max_tokens", before, "truncated")
        if self.openings:
            text = self._opened(text)
        if not text:
            raise Unmet("empty reply", outcome="unparsable")
        for field in self.unquoted:
            if field in fields:
                self._refuse_quotation(text, str(fields[field]), f"quotes {field}")
        return text

    @staticmethod
    def _refuse_quotation(text: str, source: str, reason: str) -> None:
        shared = longest_shared_run(text, source)
        if shared.words >= QUOTED_WORDS:
            quoted = text[slice(*shared.span)]
            raise Unmet(reason, f"{shared.words} words in a row: {quoted!r}")

    def _opened(self, text: str) -> str:
        """The text within the JSON asked for, which begins as it must."""
        try:
            found = reply_json(text)
        except ValueError:
            found = None
        if not (isinstance(found, dict) and found.keys() == {"reply"}):
            raise Unmet("not the JSON asked for", view(text), "unparsable")
        reply = found["reply"]
        if not isinstance(reply, str):
            raise Unmet("not the JSON asked for", view(text), "unparsable")
        if not reply.startswith(tuple(f"{opening} " for opening in self.openings)):
            raise Unmet("opens otherwise", view(reply))
        return reply.strip()

    def templates(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Every template: its key in the table, its text, and what only it may name."""
        yield "system", self.system, frozenset()
        yield "prompt", self.prompt, frozenset()
        for text in (text for turns in self.examples for text in turns):
            yield "examples", text, frozenset()
        for field, text in self.append.items():
            yield f"append.{field}", text, frozenset({field})
        for field, text in self.writes.items():
            yield f"writes.{field}", text, frozenset({"reply"})

    def strays(self, settings: Mapping[str, object]) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Key and name of every hole that would stay empty under `settings`, and what may be named.

        LibraryError for a text that is no template, or texts that name each other in a circle.
        """
        words = self._words(settings)
        allowed = self.sure | {word for word, _ in words}
        for key, text, more in self.templates():
            for hole in sorted(_ready(text, words, f"{self.where} {key}").names - self.sure - more):
                yield key, hole, allowed | more

    def _words(self, settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
        own = ((word, str(settings[word])) for word in sorted(self.words))
        return (*self.constants.items(), *own)


def opened_by(openings: tuple[str, ...]) -> dict[str, object]:
    """JSON Schema of a reply that is one sentence which begins in one of these ways."""
    pattern = rf'^({"|".join(openings)}) [^"\\\n?.]{{15,200}}[?.]$'
    return {
        "type": "object",
        "properties": {"reply": {"type": "string", "pattern": pattern}},
        "required": ["reply"],
        "additionalProperties": False,
    }


_ENDS = re.compile(
    r"""
    (?<!^\d)(?<!^\d\d) [.!?…]+ ["'”’)\]*]* (?=\s|$)   # a stop that is not a list's number
    | [。！？]["'”’」』）]*                              # a stop that no space follows
    | \n                                              # the end of a line
    """,  # noqa: RUF001
    re.VERBOSE | re.MULTILINE,
)


def whole_sentences(text: str) -> str:
    """The text up to the end of its last finished sentence or line; empty if there is none."""
    ends = [found.end() for found in _ENDS.finditer(text)]
    return text[: ends[-1]].rstrip() if ends else ""


@lru_cache(maxsize=4096)
def _ready(text: str, words: tuple[tuple[str, str], ...], where: str) -> Template:
    """The template with its words filled in; only fields of the record are left as holes."""
    given = {word: Template.parse(value, where) for word, value in words}
    return Template.parse(text, where).inlined(given, where)
