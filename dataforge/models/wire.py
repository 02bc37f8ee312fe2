"""The chat-completions format, which servers, providers and llama.cpp all speak.

Requests out of messages and parameters, replies out of what came back. It reads the first choice's
text and nothing else: no tool calls, no log-probabilities, no separate reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dataforge.models.base import Finish, Message, Params, Reply
from dataforge.models.text import clean

__all__ = ["Malformed", "chat_reply", "chat_request"]


class Malformed(ValueError):
    """What came back is no chat completion; the message says what is wrong with it."""


def chat_request(messages: Sequence[Message], params: Params) -> dict[str, object]:
    """The request's JSON object, without the model's name."""
    request: dict[str, object] = {
        "messages": [{"role": each.role, "content": clean(each.content)} for each in messages],
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "seed": params.seed,
    }
    if params.schema is not None:
        request["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": dict(params.schema)},
        }
    return request


def chat_reply(body: object) -> Reply:
    """The reply in a response's JSON value; raises Malformed when there is none.

    A reply that a filter withheld is an empty one. Tokens that were not reported count as 0.
    """
    choices = _field(body, "choices")
    if not isinstance(choices, list) or not choices:
        raise Malformed("no `choices`")
    message = _field(choices[0], "message")
    if not isinstance(message, Mapping):
        raise Malformed("no `message` in the first choice")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise Malformed(f"the message's `content` is {type(content).__name__}, not text")
    finish: Finish = "length" if _field(choices[0], "finish_reason") == "length" else "stop"
    usage = _field(body, "usage")
    return Reply(
        text=content or "",
        finish=finish,
        tokens_in=_count(_field(usage, "prompt_tokens")),
        tokens_out=_count(_field(usage, "completion_tokens")),
        tokens_cached=_count(_field(_field(usage, "prompt_tokens_details"), "cached_tokens")),
        tokens_reasoning=_count(
            _field(_field(usage, "completion_tokens_details"), "reasoning_tokens")
        ),
    )


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
