"""Anthropic's Messages API, spoken natively: reasoning, refusals and cached tokens come through.

Version 2023-06-01 of the API, which still takes a temperature. It samples once a request and knows
no seed: `n` and `logprobs` are refused, a seed is not sent. Schemas go out as structured output
(`output_config.format`), not as a forced tool, since a tool cannot be forced while the model
thinks. What it has no words for (bounds, lengths, patterns) is told in the schema's descriptions
and left to the reader of the reply to check. Thinking is not asked for, and thinking blocks are not
sent back in a tool conversation. No streaming, no images, no prompt caching of its own.

A temperature above 1 is refused. A temperature or `top_p` of 1, the API's own default, is not sent.
Models that take no other (from Claude 4.7 on) need `?sampling=off`, which leaves both out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from dataforge.errors import FatalModelError, RequestRefused
from dataforge.models.anthropic_schema import stated
from dataforge.models.base import Finish, Message, Params, Reply, ToolCall
from dataforge.models.endpoint import Endpoint
from dataforge.models.failure import check_able
from dataforge.models.key import find_key, is_at
from dataforge.models.text import clean, clean_json
from dataforge.models.weights import served_weights
from dataforge.models.wire import Malformed, count

__all__ = ["AnthropicModel", "read_message"]

_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_NO_SAMPLING = re.compile(
    r"\b(temperature|top_p)\b.{0,60}\b(deprecated|(not|un) ?supported|cannot both)", re.IGNORECASE
)
_FINISH: Mapping[object, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tools",
    "refusal": "refused",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class AnthropicModel:
    """A model behind `POST {url}/v1/messages`."""

    def __init__(
        self,
        model: str,
        *,
        url: str = _URL,
        weights: str | None = None,
        limit: int = 16,
        timeout: float = 600.0,
        key_env: str | None = None,
        key_file: str | None = None,
        schemas: bool = True,
        sampling: bool = True,
    ) -> None:
        """`timeout` is in seconds, for a whole call; without `sampling` the model's own is used.

        Raises UnknownModel for `key_env` or `key_file` without a key, and for Anthropic's own
        address without any.
        """
        own = is_at(url, "anthropic.com")
        # Another host has no business with the key of Anthropic, nor Anthropic with another's.
        usual = "ANTHROPIC_API_KEY" if own else "DATAFORGE_API_KEY"
        key = find_key(key_env, key_file, (usual,), needed=f"anthropic:{model}" if own else "")
        self._model = model
        self._weights = weights or served_weights(model)
        self._schemas = schemas
        self._sampling = sampling
        headers = {"anthropic-version": _VERSION}
        if key.value:
            headers["x-api-key"] = key.value
        # Its own clients leave the version out of an address, others' put it in.
        url = url.rstrip("/").removesuffix("/v1")
        self._endpoint = Endpoint(
            url, "/v1/messages", model, key=key, headers=headers, limit=limit, timeout=timeout
        )

    def __repr__(self) -> str:
        return f"AnthropicModel({self._endpoint.where})"

    @property
    def weights(self) -> str:
        """Identity of the weights, by the model's name unless it was declared."""
        return self._weights

    @property
    def limit(self) -> int:
        """Most requests worth having in flight at once."""
        return self._endpoint.limit

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """One reply; see `failure` for which answers raise what."""
        request = self._request(messages, params)
        try:
            return await self._endpoint.ask(request, read_message)
        except RequestRefused as error:
            if "temperature" in request or "top_p" in request:
                _blame_sampling(str(error))
            raise

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()

    def _request(self, messages: Sequence[Message], params: Params) -> dict[str, object]:
        where = self._endpoint.where
        check_able(where, params, "tools")
        system, turns = _turns(messages, where)
        request: dict[str, object] = {
            "model": self._model,
            "max_tokens": params.max_tokens,
            "messages": turns,
        }
        if system:
            request["system"] = system
        if self._sampling:
            if params.temperature > 1.0:
                raise FatalModelError(
                    f"{where}: a temperature of {params.temperature:g} is above 1, the highest "
                    "that Anthropic takes: lower the node's setting"
                )
            asked = {"temperature": params.temperature, "top_p": params.top_p}
            request |= {name: value for name, value in asked.items() if value != 1.0}
        if params.schema is not None and self._schemas:
            request["output_config"] = {
                "format": {"type": "json_schema", "schema": stated(params.schema)}
            }
        if params.tools:
            request["tools"] = [_tool(each, where) for each in params.tools]
        return request


def _blame_sampling(said: str) -> None:
    """Raises FatalModelError when it is the sampling settings that were refused."""
    if _NO_SAMPLING.search(said):
        raise FatalModelError(
            f"{said}. Leave the settings to the model with ?sampling=off, or have every node that "
            "asks it set temperature or top_p to 1"
        ) from None


def _turns(messages: Sequence[Message], where: str) -> tuple[str, list[dict[str, object]]]:
    """The system's text, and the turns that follow it, alternating."""
    first = next((at for at, each in enumerate(messages) if each.role != "system"), len(messages))
    if any(each.role == "system" for each in messages[first:]):
        raise FatalModelError(
            f"{where}: Anthropic takes what the system says only before all else; have the node "
            "put it first"
        )
    turns: list[dict[str, object]] = []
    blocks: list[object] = []
    for each in messages[first:]:
        role = "assistant" if each.role == "assistant" else "user"
        if not turns or turns[-1]["role"] != role:
            blocks = []
            turns.append({"role": role, "content": blocks})
        blocks += _blocks(each, where)
    return "\n\n".join(clean(each.content) for each in messages[:first]), turns


def _blocks(message: Message, where: str) -> list[object]:
    text = clean(message.content)
    if message.role == "tool":
        answered = clean(message.tool_call_id)
        return [{"type": "tool_result", "tool_use_id": answered, "content": text}]
    # Beside a tool call an empty text is nothing, and refused.
    blocks: list[object] = []
    if text or not message.tool_calls:
        blocks.append({"type": "text", "text": text})
    for each in message.tool_calls:
        blocks.append(
            {
                "type": "tool_use",
                "id": clean(each.id),
                "name": clean(each.name),
                "input": _input(each, where),
            }
        )
    return blocks


def _input(call: ToolCall, where: str) -> object:
    try:
        found = clean_json(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise RequestRefused(
            f"{where}: the arguments of the call of {call.name!r} are no JSON object, which "
            "Anthropic does not take back"
        )
    return found


def _tool(tool: Mapping[str, object], where: str) -> dict[str, object]:
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise FatalModelError(
            f"{where}: a tool is {{'type': 'function', 'function': {{'name': …, 'parameters': …}}}}"
        )
    made: dict[str, object] = {
        "name": function["name"],
        "input_schema": function.get("parameters") or {"type": "object"},
    }
    made |= {name: function[name] for name in ("description", "strict") if name in function}
    return {name: clean_json(value) for name, value in made.items()}


def read_message(body: object) -> Reply:
    """The reply in a response's JSON value; raises Malformed when there is none."""
    if not isinstance(body, Mapping) or not isinstance(body.get("content"), list):
        raise Malformed("no `content`")
    texts, thoughts, calls = [""], [""], []
    for block in body["content"]:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text":
            texts.append(_text(block, "text"))
        elif kind == "thinking":
            thoughts.append(_text(block, "thinking"))
        elif kind == "tool_use":
            calls.append(_call(block))
        elif not isinstance(kind, str):
            raise Malformed("a block of the `content` has no `type`")
    reason, text = body.get("stop_reason"), "".join(texts)
    # A reason not known here, such as a pause, is no end that a reply comes to by itself.
    finish = _FINISH.get(reason, "length") if isinstance(reason, str) else "stop"
    refused = finish == "refused"
    usage = body.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("output_tokens_details")
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Reply(
        text="" if refused else text,
        finish=finish,
        tokens_in=count(usage.get("input_tokens")) + cached + written,
        tokens_out=count(usage.get("output_tokens")),
        tokens_cached=cached,
        tokens_reasoning=count(
            details.get("thinking_tokens") if isinstance(details, Mapping) else None
        ),
        reasoning="".join(thoughts),
        tool_calls=() if refused else tuple(calls),
        refusal=(text or _details(body)) if refused else "",
    )


def _text(block: Mapping[object, object], name: str) -> str:
    said = block.get(name)
    if not isinstance(said, str):
        raise Malformed(f"a block of {name} has no text")
    return said


def _call(block: Mapping[object, object]) -> ToolCall:
    identity, name = block.get("id"), block.get("name")
    if not isinstance(identity, str) or not isinstance(name, str) or not name:
        raise Malformed("a `tool_use` has no `id` or no `name`")
    try:
        arguments = json.dumps(block.get("input"), ensure_ascii=False)
    except (RecursionError, ValueError) as error:
        raise Malformed(f"the `input` of a `tool_use` cannot be written: {error}") from None
    return ToolCall(identity, name, arguments)


def _details(body: Mapping[object, object]) -> str:
    """What a refusal is put down to, where it is said."""
    details = body.get("stop_details")
    said = details.get("explanation") if isinstance(details, Mapping) else None
    return said if isinstance(said, str) else ""
