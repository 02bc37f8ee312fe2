"""The end of a walk: what was asked and answered, as a conversation."""

from __future__ import annotations

from typing import Literal

from dataforge import Struct, node


class Passed(Struct):
    """An answer that a judge let through."""

    instruction: str
    answer: str
    verdict: Literal["pass"]


class Conversation(Struct):
    """One training sample."""

    messages: list[dict[str, str]]


@node
async def chat(seen: Passed) -> Conversation:
    """Makes the pair a conversation of two turns."""
    return Conversation(
        messages=[
            {"role": "user", "content": seen.instruction},
            {"role": "assistant", "content": seen.answer},
        ]
    )
