"""Every other provider, through litellm: an extra, since importing it takes seconds and 200 MB.

litellm turns each provider's format into one; retrying, limits and accounting are the run's. Its
cost map is not fetched, its telemetry is off, its proxy is never started, and its releases known to
be hostile are refused. Keys are where litellm looks for them: `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`
and so on. Sampling settings that a provider does not know (a seed, say) are dropped, so replies
need not be repeatable; choices, tools and log-probabilities that it does not know are refused.

The extra pins one release, and `requirements-hosted.txt` its content.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import cast

from dataforge.errors import ContextOverflow, FatalModelError, ModelError, UnknownModel
from dataforge.models.base import Message, Params, Reply
from dataforge.models.failure import check_able, failure, retry_after
from dataforge.models.weights import served_weights
from dataforge.models.wire import Malformed, chat_reply, chat_request

__all__ = ["HostedModel"]

_INSTALL = "pip install 'dataforge-dag[hosted]'"
_SHORTEST_KEY = 8
_HOSTILE = ("1.82.7", "1.82.8", "1.107.")
"""Releases that carried credential stealers, and a series under the same suspicion."""


class HostedModel:
    """A model by litellm's name for it, such as `anthropic/claude-sonnet-4-5`."""

    def __init__(
        self,
        model: str,
        *,
        weights: str | None = None,
        limit: int = 16,
        timeout: float = 600.0,
    ) -> None:
        """`timeout` is in seconds, for a whole call.

        Raises UnknownModel when litellm is missing, hostile, or does not know the provider.
        """
        if find_spec("litellm") is None:
            raise UnknownModel(
                f"{model}: reads as PROVIDER/MODEL, a hosted model, which needs litellm; {_INSTALL}"
            )
        _refuse_hostile(model)
        # Whatever it was: anything but `True` has the import fetch a file.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        import litellm

        litellm.telemetry = False
        litellm.suppress_debug_info = True
        try:
            litellm.get_llm_provider(model)
        except litellm.exceptions.BadRequestError:
            raise UnknownModel(
                f"{model}: litellm knows no provider {model.partition('/')[0]!r}; its names are "
                "PROVIDER/MODEL, as in openai/gpt-4o-mini"
            ) from None
        self._call = cast("Callable[..., Awaitable[object]]", litellm.acompletion)
        self._able = tuple(map(str, litellm.get_supported_openai_params(model=model) or ()))
        self._model = model
        self._weights = weights or served_weights(model)
        self._limit = limit
        self._timeout = timeout

    @property
    def weights(self) -> str:
        """Identity of the weights, by the model's name unless it was declared."""
        return self._weights

    @property
    def limit(self) -> int:
        """Most requests worth having in flight at once."""
        return self._limit

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """One reply; a provider's failure is typed as an HTTP status's would be."""
        check_able(self._model, params, *self._able)
        try:
            answer = await self._call(
                model=self._model,
                **chat_request(messages, params),
                timeout=self._timeout,
                num_retries=0,
                max_retries=0,
                drop_params=True,
            )
        # litellm raises the classes of several clients, with no root but this.
        except Exception as error:
            raise _typed(error, self._model) from None
        try:
            return chat_reply(_plain(answer))
        except Malformed as error:
            raise failure(500, f"not a chat completion: {error}", self._model) from None

    async def close(self) -> None:
        """Nothing to free: litellm keeps its own clients."""


def _typed(error: Exception, model: str) -> ModelError:
    said = _hidden(str(getattr(error, "message", "") or error))
    status = getattr(error, "status_code", None)
    if type(error).__name__ == "ContextWindowExceededError":
        return ContextOverflow(f"{model}: {said}")
    if not isinstance(status, int):
        return FatalModelError(f"{model}: litellm raised {type(error).__name__}: {said}")
    headers = getattr(error, "litellm_response_headers", None) or {}
    provider = model.partition("/")[0].upper()
    wait = retry_after(headers.get("retry-after"))
    return failure(status, said, model, wait, f"set {provider}_API_KEY in the environment")


def _hidden(text: str) -> str:
    """The text without any key of the environment, which some providers repeat in complaints."""
    for name, value in os.environ.items():
        # A shorter one is no secret, and would be hidden within words.
        if name.endswith(("_KEY", "_TOKEN", "_SECRET")) and len(value) >= _SHORTEST_KEY:
            text = text.replace(value, "***")
    return text


def _plain(answer: object) -> object:
    dump = getattr(answer, "model_dump", None)
    return dump() if callable(dump) else answer


def _refuse_hostile(model: str) -> None:
    try:
        found = version("litellm")
    except PackageNotFoundError:
        return
    if any(found == bad or found.startswith(bad) for bad in _HOSTILE):
        raise UnknownModel(
            f"{model}: litellm {found} is a release known or suspected to steal credentials and "
            f"is not loaded; {_INSTALL} --upgrade, and change the keys it may have seen"
        )
