"""What the tests of the library share: a type, and a model that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from dataforge.library.root import Library
from dataforge.models.base import Message, Reply

Write = Callable[[Mapping[str, str]], Library]
"""Writes files, path -> text, as a library."""


class Scripted:
    """A model that says what it is given, in turn, and remembers what it was asked."""

    __dataforge_role__: ClassVar[str] = "model"

    def __init__(self, *replies: str | Reply) -> None:
        self.replies = list(replies)
        self.asked: list[list[Message]] = []
        self.params: list[dict[str, object]] = []

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        temperature: float = 0.7,
        top_p: float = 1.0,
        max_tokens: int = 512,
        schema: Mapping[str, object] | None = None,
        **asked: object,
    ) -> Reply:
        """The next reply."""
        self.asked.append(list(messages))
        self.params.append(
            {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "schema": schema}
        )
        reply = self.replies.pop(0)
        if isinstance(reply, Reply):
            return reply
        return Reply(text=reply, finish="stop", tokens_in=1, tokens_out=1)


def cut(text: str) -> Reply:
    """A reply that was cut at its token limit."""
    return Reply(text=text, finish="length", tokens_in=1, tokens_out=9)


def withheld(said: str) -> Reply:
    """A reply that its endpoint withheld."""
    return Reply(text="", finish="refused", tokens_in=1, tokens_out=1, refusal=said)
