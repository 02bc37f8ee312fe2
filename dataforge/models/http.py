"""Any OpenAI-compatible endpoint: vLLM, SGLang, llama-server, Ollama, most providers.

A lean client instead of a provider's own, which costs several times the CPU a call. It neither
retries nor limits the rate: the run does, told by the errors raised here. No redirects, no proxy
settings from the environment, no streaming.

The key comes from DATAFORGE_API_KEY or, at OpenAI's own address only, from OPENAI_API_KEY; a spec's
`key_env=NAME` names another variable. It is shown in no error and no repr.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

import aiohttp
import orjson

from dataforge.errors import FatalModelError, ModelError, TransientModelError, UnknownModel
from dataforge.models.base import Message, Params, Reply
from dataforge.models.failure import failure, retry_after
from dataforge.models.weights import served_weights
from dataforge.models.wire import Malformed, chat_reply, chat_request

__all__ = ["HttpModel"]

_CONNECT_S = 20.0


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
        schemas: bool = True,
    ) -> None:
        """`timeout` is in seconds, for a whole call; without `schemas` none are sent.

        Raises UnknownModel when `key_env` names a variable that is not set.
        """
        parts = urlsplit(url)
        self._endpoint = parts._replace(path=parts.path.rstrip("/") + "/chat/completions").geturl()
        self._model = model
        self._where = f"{model} at {parts._replace(query='').geturl()}"
        self._weights = weights or served_weights(model)
        self._limit = limit
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_S)
        self._openai = (parts.hostname or "").endswith("openai.com")
        self._key_env = key_env or "DATAFORGE_API_KEY"
        self._key = _key(key_env, self._openai)
        self._schemas = schemas
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpModel({self._where})"

    @property
    def weights(self) -> str:
        """Identity of the weights, by the model's name unless it was declared."""
        return self._weights

    @property
    def limit(self) -> int:
        """Most requests worth having in flight at once."""
        return self._limit

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """One reply; see `failure` for which answers raise what."""
        status, body, wait = await self._post(self._request(messages, params))
        text = body.decode("utf-8", "replace")
        if not 200 <= status < 300:
            raise self._failure(status, text, wait)
        try:
            found = json.loads(text)
            return chat_reply(found)
        except Malformed as error:
            # Some routers put a provider's failure inside a success.
            inner = _inner_status(found)
            if inner is not None:
                raise self._failure(inner, text, wait) from None
            raise TransientModelError(f"{self._where}: not a chat completion: {error}") from None
        except (ValueError, RecursionError):
            raise TransientModelError(
                f"{self._where}: the answer is not JSON: {self._hidden(text[:200])!r}"
            ) from None

    async def close(self) -> None:
        """Closes the connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _request(self, messages: Sequence[Message], params: Params) -> dict[str, object]:
        request = {"model": self._model, **chat_request(messages, params)}
        if not self._schemas:
            request.pop("response_format", None)
        if self._openai:
            # Its newer models refuse the older name, its older ones take either.
            request["max_completion_tokens"] = request.pop("max_tokens")
        return request

    async def _post(self, request: dict[str, object]) -> tuple[int, bytes, float | None]:
        """Status, body, and the wait asked for in seconds."""
        try:
            async with self._opened().post(
                self._endpoint, data=orjson.dumps(request), allow_redirects=False
            ) as response:
                wait = retry_after(response.headers.get("Retry-After"))
                return response.status, await response.read(), wait
        except aiohttp.ClientConnectorCertificateError as error:
            raise FatalModelError(
                f"{self._where}: its certificate is not trusted: {error.certificate_error}"
            ) from None
        except aiohttp.InvalidURL:
            raise FatalModelError(f"{self._where}: the address is not a valid one") from None
        except TimeoutError:
            raise TransientModelError(f"{self._where}: no answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransientModelError(
                f"{self._where}: the connection failed ({self._hidden(str(error))})"
            ) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise FatalModelError(f"{self._where}: used after it was closed")
        if self._session is None:
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._session = aiohttp.ClientSession(
                headers=headers,
                timeout=self._timeout,
                connector=aiohttp.TCPConnector(limit=self._limit),
            )
        return self._session

    def _failure(self, status: int, text: str, wait: float | None) -> ModelError:
        return failure(status, self._hidden(text), self._where, wait, self._key_env)

    def _hidden(self, text: str) -> str:
        """The text without the key, which some servers repeat in their complaints."""
        return text.replace(self._key, "***") if self._key else text


def _key(variable: str | None, openai: bool) -> str:
    if variable is not None:
        if not os.environ.get(variable):
            raise UnknownModel(f"key_env={variable}: there is no such variable in the environment")
        return os.environ[variable]
    key = os.environ.get("DATAFORGE_API_KEY", "")
    # Another host has no business with the key of OpenAI.
    return key or (os.environ.get("OPENAI_API_KEY", "") if openai else "")


def _inner_status(body: object) -> int | None:
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else None
