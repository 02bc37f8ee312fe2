"""The last step: a passage and its summary become one training conversation."""

from __future__ import annotations

from dataforge import Struct, Unmet, node


class Summed(Struct):
    """What the step needs: every field is a precondition."""

    passage: str
    summary: str
    kind: str


class Conversation(Struct):
    """What it promises: every field is a postcondition."""

    messages: list[dict[str, str]]


@node
async def pair(seen: Summed, *, at_most: float = 0.7) -> Conversation:
    """Pairs them; refuses a summary longer than `at_most` of its passage.

    `at_most` is a setting: a graph changes it under [settings.pair]. A parameter annotated as
    `Model` would be a role.
    """
    if len(seen.summary) > at_most * len(seen.passage):
        # Unmet is no error: the walk is given up and counted under this reason.
        raise Unmet("summary too long", f"{len(seen.summary)} of {len(seen.passage)} characters")
    return Conversation(
        messages=[
            {"role": "user", "content": f"Sum this up as a {seen.kind}.\n\n{seen.passage}"},
            {"role": "assistant", "content": seen.summary},
        ]
    )
