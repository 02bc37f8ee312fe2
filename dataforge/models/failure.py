"""A failed request as a typed error: whether trying again may help, and if not, what to do.

One table for every endpoint that answers with HTTP statuses. Where providers hide one failure
under another's status (no credit as 429, a long prompt as 400), their words decide.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    ModelError,
    RateLimited,
    TransientModelError,
)

__all__ = ["failure", "retry_after"]

_LONGEST = 300

_TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window)|maximum context|exceed_context|max_model_len"
    r"|(prompt|input)( \w+)? is too long|too many (input )?tokens|reduce the length",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient[ _](quota|balance|credit)|exceeded your current quota", re.I)


def failure(
    status: int,
    body: str,
    where: str,
    wait: float | None = None,
    key_env: str = "DATAFORGE_API_KEY",
) -> ModelError:
    """The error for an answer with `status`.

    `wait` is what `retry_after` read from its headers; `key_env` the variable that holds the key.
    """
    said = f"{where} answered HTTP {status}: {_said(body)}"
    if status in (400, 413, 422) and _TOO_LONG.search(body):
        return ContextOverflow(said)
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(body)):
        return FatalModelError(f"{said}. The account has no credit left: top it up")
    if status == 429 or (status in (503, 529) and wait is not None):
        return RateLimited(said, wait)
    if status in (408, 409, 425) or status >= 500:
        return TransientModelError(said)
    return FatalModelError(f"{said}. {_remedy(status, key_env)}")


def _remedy(status: int, key_env: str) -> str:
    if status == 401:
        return f"The key is missing or wrong: set {key_env} in the environment"
    if status == 403:
        return "The key is not allowed to use this model: ask for access or use another key"
    if status == 404:
        return "No such model, or no such address: look at both (the address mostly ends in /v1)"
    if 300 <= status < 400:
        return "Redirects are not followed: give the address it points to"
    return "The endpoint refuses what the request asks for: its words say which part"


def _said(body: str) -> str:
    """What an error body says, in one line."""
    text = body
    try:
        found: object = json.loads(body)
    except ValueError:
        found = None
    while isinstance(found, Mapping):
        found = next((found[key] for key in ("error", "message", "detail") if key in found), None)
    if isinstance(found, str):
        text = found
    line = " ".join(text.split())
    return f"{line[:_LONGEST]} …" if len(line) > _LONGEST else line or "nothing"


def retry_after(value: str | None) -> float | None:
    """Seconds a `Retry-After` header asks for, given as a number or as a date.

    None when it is absent or unreadable; never negative.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _until(value)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(value: str) -> float | None:
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
