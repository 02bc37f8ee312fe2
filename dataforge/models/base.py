"""The interface every model has: what a node sees, and what a transport offers beneath it.

A node sees a role (`Model` or `Judge`), bound for one step of one walk. A transport sees a finished
request. Between them stands the run, which journals, retries and seeds each call; no transport
retries or caches by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

__all__ = ["Finish", "Message", "Model", "Params", "Reply", "Transport"]

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said."""

    text: str
    finish: Finish
    """`length` when the reply was cut at `max_tokens`."""
    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0
    """Of `tokens_in`, those the endpoint had read before and mostly bills for less."""
    tokens_reasoning: int = 0
    """Of `tokens_out`, those spent on reasoning before the answer."""


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
    ) -> Reply:
        """One reply to the conversation so far."""
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
