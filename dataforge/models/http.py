"""Any OpenAI-compatible endpoint: vLLM, SGLang, llama-server, Ollama, most providers.

The key comes from DATAFORGE_API_KEY or, at OpenAI's own address only, from OPENAI_API_KEY; a spec's
`key_env=NAME` names another variable and `key_file=PATH` a file. It is shown in no error and no
repr. What a server does not know of a request (tools, say) it refuses or ignores as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataforge.models.base import Message, Params, Reply
from dataforge.models.endpoint import Endpoint
from dataforge.models.key import find_key, is_at
from dataforge.models.weights import served_weights
from dataforge.models.wire import chat_reply, chat_request

__all__ = ["HttpModel"]


class HttpModel:
    """A model behind `POST {url}/chat/completions`."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        weights: str | None = None,
        limit: int = 32,
        timeout: float = 600.0,
        key_env: str | None = None,
        key_file: str | None = None,
        schemas: bool = True,
    ) -> None:
        """`timeout` is in seconds, for a whole call; without `schemas` none are sent.

        Raises UnknownModel when `key_env` or `key_file` names what holds no key.
        """
        self._openai = is_at(url, "openai.com")
        # Another host has no business with the key of OpenAI.
        usual = ("DATAFORGE_API_KEY", "OPENAI_API_KEY") if self._openai else ("DATAFORGE_API_KEY",)
        key = find_key(key_env, key_file, usual)
        self._model = model
        self._weights = weights or served_weights(model)
        self._schemas = schemas
        self._endpoint = Endpoint(
            url,
            "/chat/completions",
            model,
            key=key,
            headers={"Authorization": f"Bearer {key.value}"} if key.value else {},
            limit=limit,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"HttpModel({self._endpoint.where})"

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
        return await self._endpoint.ask(self._request(messages, params), chat_reply)

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()

    def _request(self, messages: Sequence[Message], params: Params) -> dict[str, object]:
        request = {"model": self._model, **chat_request(messages, params)}
        if not self._schemas:
            request.pop("response_format", None)
        if self._openai:
            # Its newer models refuse the older name, its older ones take either.
            request["max_completion_tokens"] = request.pop("max_tokens")
        return request
