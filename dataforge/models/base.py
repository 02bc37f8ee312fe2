"""The interface every model has: what a node sees, and what a transport offers beneath it.

A node sees a role (`Model` or `Judge`), bound for one step of one walk. A transport sees a finished
request. Between them stands the run, which journals, retries and seeds each call; no transport
retries or caches by itself. A transport that cannot give the choices, tools or log-probabilities
that a request asks for says so, and leaves none of them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, runtime_checkable

from dataforge.models.text import clean, clean_json

__all__ = ["Finish", "Message", "Model", "Params", "Reply", "TokenLogprob", "ToolCall", "Transport"]

Finish = Literal["stop", "length", "refused", "tools"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that a model wants called."""

    id: str
    """By which the answer to it is matched; empty where the endpoint gave none."""
    name: str
    arguments: str
    """As the model wrote them: JSON, if it kept to the format."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token of a reply and how likely it was."""

    token: str
    logprob: float
    """Natural logarithm, finite."""
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens at this place and their log-probabilities, as many as were asked for."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's turn."""
    tool_call_id: str = ""
    """Of a tool's turn: which call it answers."""

    def told(self) -> dict[str, object]:
        """Its fields as JSON values; those of tools only where there are any."""
        told: dict[str, object] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            told["tool_calls"] = [[each.id, each.name, each.arguments] for each in self.tool_calls]
        if self.tool_call_id:
            told["tool_call_id"] = self.tool_call_id
        return told

    def cleaned(self) -> Message:
        """The same without lone surrogates."""
        content = clean(self.content)
        if self.tool_calls or self.tool_call_id:
            calls, answered = _clean_calls(self.tool_calls), clean(self.tool_call_id)
            return replace(self, content=content, tool_calls=calls, tool_call_id=answered)
        return self if content is self.content else replace(self, content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """How a reply is sampled; all of it is part of a call's identity."""

    temperature: float = 0.7
    """>= 0; 0 is greedy."""
    top_p: float = 1.0
    """In (0, 1]."""
    max_tokens: int = 512
    """Longest reply, in tokens."""
    seed: int = 0
    """In [0, 2**31); honoured by transports that can."""
    schema: Mapping[str, object] | None = None
    """JSON Schema the reply must satisfy, for transports that can constrain decoding."""
    n: int = 1
    """Choices asked for, from 1; those after the first are `Reply.others`."""
    tools: tuple[Mapping[str, object], ...] = ()
    """Functions the model may call, each as OpenAI's format has it (`type`, `function`)."""
    logprobs: int | None = None
    """How many of the likeliest tokens to tell at each place, from 0; None to tell nothing."""

    def told(self) -> dict[str, object]:
        """Its fields as JSON values; the last three only where they differ from their defaults."""
        told: dict[str, object] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "schema": self.schema,
        }
        if self.n != 1:
            told["n"] = self.n
        if self.tools:
            told["tools"] = self.tools
        if self.logprobs is not None:
            told["logprobs"] = self.logprobs
        return told

    def cleaned(self) -> Params:
        """The same without lone surrogates in its tools."""
        if not self.tools:
            return self
        return replace(self, tools=tuple(map(_clean_tool, self.tools)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said."""

    text: str
    """The answer; empty where it was withheld."""
    finish: Finish
    """`length`: cut at `max_tokens`; `refused`: withheld; `tools`: it waits for its tool calls."""
    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0
    """Of `tokens_in`, those the endpoint had read before and mostly bills for less."""
    tokens_reasoning: int = 0
    """Of `tokens_out`, those spent on reasoning before the answer."""
    reasoning: str = ""
    """What the model thought before the answer, where the endpoint tells it apart."""
    tool_calls: tuple[ToolCall, ...] = ()
    others: tuple[str, ...] = ()
    """Answers of the further choices, those left out that did not come to their own end."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """One for each token of the answer, where they were asked for."""
    refusal: str = ""
    """What was said instead of an answer, or up to where it was withheld."""

    def cleaned(self) -> Reply:
        """The same without lone surrogates."""
        text = clean(self.text)
        if not (self.reasoning or self.tool_calls or self.others or self.logprobs or self.refusal):
            return self if text is self.text else replace(self, text=text)
        return replace(
            self,
            text=text,
            reasoning=clean(self.reasoning),
            tool_calls=_clean_calls(self.tool_calls),
            others=tuple(map(clean, self.others)),
            logprobs=tuple(map(_clean_logprob, self.logprobs)),
            refusal=clean(self.refusal),
        )


class Model(Protocol):
    """A chat model as a node sees it, bound to a role by the run."""

    __dataforge_role__: ClassVar[str] = "model"

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        temperature: float = 0.7,
        top_p: float = 1.0,
        max_tokens: int = 512,
        schema: Mapping[str, object] | None = None,
        n: int = 1,
        tools: Sequence[Mapping[str, object]] = (),
        logprobs: int | None = None,
    ) -> Reply:
        """One reply to the conversation so far; see `Params` for what each asks."""
        ...


@runtime_checkable
class Transport(Protocol):
    """Runs a chat model somewhere; opened from a model spec by `models.specs.open_model`."""

    @property
    def weights(self) -> str:
        """Identity of the weights; two transports over the same weights agree on it."""
        ...

    @property
    def limit(self) -> int:
        """Most requests worth having in flight at once."""
        ...

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """One reply; raises a `ModelError` subclass that says whether trying again may help."""
        ...

    async def close(self) -> None:
        """Frees what the transport holds; safe to call twice."""
        ...


def _clean_calls(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(clean(each.id), clean(each.name), clean(each.arguments)) for each in calls
    )


def _clean_logprob(told: TokenLogprob) -> TokenLogprob:
    top = tuple((clean(token), logprob) for token, logprob in told.top)
    return TokenLogprob(clean(told.token), told.logprob, top)


def _clean_tool(tool: Mapping[str, object]) -> Mapping[str, object]:
    cleaned = clean_json(tool)
    return cleaned if isinstance(cleaned, Mapping) else tool
