"""Posting JSON to an endpoint and getting a reply or a typed failure: what HTTP transports share.

A lean client instead of a provider's own, which costs several times the CPU a call. It neither
retries nor limits the rate: the run does, told by the errors raised here. No redirects, no proxy
settings from the environment, no streaming.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import urlsplit

import aiohttp
import orjson
from yarl import URL

from dataforge.errors import FatalModelError, ModelError, TransientModelError
from dataforge.models.base import Reply
from dataforge.models.failure import failure, retry_after
from dataforge.models.key import Key
from dataforge.models.wire import Malformed

__all__ = ["Endpoint", "decoded"]

_CONNECT_S = 20.0


class Endpoint:
    """One address that answers requests for one model."""

    def __init__(
        self,
        url: str,
        path: str,
        model: str,
        *,
        key: Key,
        headers: Mapping[str, str],
        limit: int,
        timeout: float,
    ) -> None:
        """`path` is added to that of `url`; `headers` may hold the key; `timeout` is in seconds."""
        parts = urlsplit(url)
        self._url = parts._replace(path=parts.path.rstrip("/") + path).geturl()
        self._parsed: URL | None = None
        self.where = f"{model} at {parts._replace(query='').geturl()}"
        """The model and its address, for messages; without a query, which may hold a key."""
        self.limit = limit
        self._key = key
        self._headers = {"Content-Type": "application/json", **headers}
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_S)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def ask(self, request: Mapping[str, object], read: Callable[[object], Reply]) -> Reply:
        """What `read` makes of the answer; see `failure` for which answers raise what.

        An answer that `read` calls Malformed raises TransientModelError.
        """
        status, body, wait = await self._post(orjson.dumps(request))
        if not 200 <= status < 300:
            raise self._failure(status, body, wait)
        try:
            found = decoded(body)
        except (ValueError, RecursionError):
            said = self._key.hidden(body[:20_000].decode("utf-8", "replace"))[:200]
            raise TransientModelError(f"{self.where}: the answer is not JSON: {said!r}") from None
        try:
            return read(found)
        except Malformed as error:
            # Some routers put a provider's failure inside a success.
            inner = _inner_status(found)
            if inner is not None:
                raise self._failure(inner, body, wait) from None
            said = self._key.hidden(str(error))
            raise TransientModelError(f"{self.where}: not a reply: {said}") from None

    async def close(self) -> None:
        """Closes the connections; safe to call twice."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, data: bytes) -> tuple[int, bytes, float | None]:
        """Status, body, and the wait asked for in seconds."""
        try:
            session = self._opened()
            if self._parsed is None:
                self._parsed = URL(self._url)
            async with session.post(self._parsed, data=data, allow_redirects=False) as response:
                wait = retry_after(response.headers.get("Retry-After"))
                return response.status, await response.read(), wait
        except aiohttp.ClientConnectorCertificateError as error:
            raise FatalModelError(
                f"{self.where}: its certificate is not trusted: {error.certificate_error}"
            ) from None
        except (aiohttp.InvalidURL, ValueError):
            raise FatalModelError(f"{self.where}: the address is not a valid one") from None
        except TimeoutError:
            raise TransientModelError(f"{self.where}: no answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransientModelError(
                f"{self.where}: the connection failed ({self._key.hidden(str(error))})"
            ) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise FatalModelError(f"{self.where}: used after it was closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=self._timeout,
                connector=aiohttp.TCPConnector(limit=self.limit),
                # A jar would be looked through for each request, and no API has cookies.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _failure(self, status: int, body: bytes, wait: float | None) -> ModelError:
        text = self._key.hidden(body.decode("utf-8", "replace"))
        return failure(status, text, self.where, wait, self._key.remedy)


def decoded(body: bytes) -> object:
    """The JSON value in a body; ValueError or RecursionError when there is none."""
    try:
        return cast("object", orjson.loads(body))
    except orjson.JSONDecodeError:
        # The slower one takes half a character, broken UTF-8 and `NaN`, which do occur.
        return cast("object", json.loads(body.decode("utf-8", "replace")))


def _inner_status(body: object) -> int | None:
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else None
