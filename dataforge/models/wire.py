"""The chat-completions format, which servers, providers and llama.cpp all speak.

Requests out of messages and parameters, replies out of what came back: the first choice with its
reasoning, tool calls and log-probabilities, and the texts of the further ones. A parameter that is
at its default is not sent, except for those that every server knows. It reads neither audio nor
images, nor the older `function_call`, and leaves reasoning that a server mixes into the text there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dataforge.models.base import Finish, Message, Params, Reply, TokenLogprob, ToolCall
from dataforge.models.text import clean, clean_json

__all__ = ["LEAST_LOGPROB", "Malformed", "chat_reply", "chat_request", "count"]

LEAST_LOGPROB = -9999.0
"""What servers put for a token that cannot be; minus infinity has no place in JSON."""
_MOST = 1e6
"""More than any log-probability; a server's rounding may bring one above 0."""
_MOST_TOKENS = 2**53


class Malformed(ValueError):
    """What came back is no chat completion; the message says what is wrong with it."""


def chat_request(messages: Sequence[Message], params: Params) -> dict[str, object]:
    """The request's JSON object, without the model's name."""
    request: dict[str, object] = {
        "messages": [_turn(each) for each in messages],
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
    if params.n != 1:
        request["n"] = params.n
    if params.tools:
        request["tools"] = clean_json(params.tools)
    if params.logprobs is not None:
        request |= {"logprobs": True, "top_logprobs": params.logprobs}
    return request


def chat_reply(body: object) -> Reply:
    """The reply in a response's JSON value; raises Malformed when there is none.

    A further choice that was cut, withheld or ended in tool calls is left out. Tokens that were not
    reported count as 0. Texts are as they came, so that they may hold lone surrogates.
    """
    choices = _field(body, "choices")
    if not isinstance(choices, list) or not choices:
        raise Malformed("no `choices`")
    choice = choices[0]
    message, content, finish = _choice(choice)
    refused = finish == "refused"
    usage = _field(body, "usage")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    told = _field(choice, "logprobs")
    return Reply(
        text="" if refused else content,
        finish=finish,
        tokens_in=count(_field(usage, "prompt_tokens")),
        tokens_out=count(_field(usage, "completion_tokens")),
        tokens_cached=count(_field(_field(usage, "prompt_tokens_details"), "cached_tokens")),
        tokens_reasoning=count(
            _field(_field(usage, "completion_tokens_details"), "reasoning_tokens")
        ),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        tool_calls=() if refused else _tool_calls(message.get("tool_calls")),
        others=_others(choices) if len(choices) > 1 else (),
        logprobs=_logprobs(told) if told and not refused else (),
        refusal=(_refusal(message) or content) if refused else "",
    )


def count(value: object) -> int:
    """A number of tokens as a usage report has it; 0 for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS:
        return value
    return 0


def _turn(message: Message) -> dict[str, object]:
    turn: dict[str, object] = {"role": message.role, "content": clean(message.content)}
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": clean(each.id),
                "type": "function",
                "function": {"name": clean(each.name), "arguments": clean(each.arguments)},
            }
            for each in message.tool_calls
        ]
    if message.tool_call_id:
        turn["tool_call_id"] = clean(message.tool_call_id)
    return turn


def _choice(choice: object) -> tuple[Mapping[object, object], str, Finish]:
    """A choice's message, its text and how it ended."""
    message = _field(choice, "message")
    if not isinstance(message, Mapping):
        raise Malformed("no `message` in a choice")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise Malformed(f"the message's `content` is {type(content).__name__}, not text")
    reason = _field(choice, "finish_reason")
    if reason in ("error", "abort"):
        raise Malformed(f"the reply was broken off: its `finish_reason` is {reason!r}")
    finish: Finish = "stop"
    if reason in ("content_filter", "refusal") or _refusal(message):
        finish = "refused"
    elif reason == "length":
        finish = "length"
    elif reason == "tool_calls" or message.get("tool_calls"):
        finish = "tools"
    return message, content or "", finish


def _refusal(message: Mapping[object, object]) -> str:
    said = message.get("refusal")
    return said if isinstance(said, str) else ""


def _others(choices: Sequence[object]) -> tuple[str, ...]:
    read = [_choice(each) for each in choices[1:]]
    return tuple(text for _, text, finish in read if finish == "stop")


def _tool_calls(told: object) -> tuple[ToolCall, ...]:
    if not told:
        return ()
    if not isinstance(told, list):
        raise Malformed(f"the message's `tool_calls` is {type(told).__name__}, not a list")
    return tuple(map(_tool_call, told))


def _tool_call(told: object) -> ToolCall:
    function = _field(told, "function")
    name, arguments = _field(function, "name"), _field(function, "arguments")
    if not isinstance(name, str) or not name:
        raise Malformed("a tool call names no function")
    if isinstance(arguments, Mapping):
        # Some servers have read the arguments already.
        try:
            arguments = json.dumps(arguments, ensure_ascii=False)
        except (RecursionError, TypeError, ValueError) as error:
            raise Malformed(f"a tool call's `arguments` cannot be written: {error}") from None
    if arguments is not None and not isinstance(arguments, str):
        raise Malformed(f"a tool call's `arguments` is {type(arguments).__name__}, not text")
    identity = _field(told, "id")
    return ToolCall(identity if isinstance(identity, str) else "", name, arguments or "")


def _logprobs(told: object) -> tuple[TokenLogprob, ...]:
    content = _field(told, "content")
    if content is None:
        return ()
    if not isinstance(content, list):
        raise Malformed(f"`logprobs.content` is {type(content).__name__}, not a list")
    return tuple(_token(each) for each in content)


def _token(told: object) -> TokenLogprob:
    top = _field(told, "top_logprobs") or []
    if not isinstance(top, list):
        raise Malformed(f"`top_logprobs` is {type(top).__name__}, not a list")
    return TokenLogprob(*_likelihood(told), tuple(map(_likelihood, top)))


def _likelihood(told: object) -> tuple[str, float]:
    token, logprob = _field(told, "token"), _field(told, "logprob")
    if not isinstance(token, str):
        raise Malformed("a token in `logprobs` has no text")
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or not logprob < _MOST:
        raise Malformed(f"the `logprob` of {token[:40]!r} is not a number that can be one")
    return token, float(max(logprob, LEAST_LOGPROB))


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None
