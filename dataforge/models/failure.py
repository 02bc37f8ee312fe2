"""A failed request as a typed error: whether trying again may help, and if not, what to do.

One table for every endpoint that answers with HTTP statuses. Where providers hide one failure
under another's status (no credit as 429, a long prompt, a wrong key or an unknown model as 400, a
flagged prompt as 403), their words decide. A request refused for its own sake costs its walk; what
every request would meet stops the run. An endpoint that calls both 400 in words not known here
refuses walk after walk, and the report counts them.
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
    RequestRefused,
    TransientModelError,
)
from dataforge.models.base import Params
from dataforge.models.text import clean

__all__ = ["check_able", "failure", "retry_after"]

_LONGEST = 300

_TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window|limit)|maximum context|exceed_context|max_model_len"
    r"|(prompt|input)( \w+)? is too long|too many (input )?tokens|reduce the length",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model[ _](is )?not[ _](found|exist)|(unknown|invalid|unsupported) model\b"
    r"|no such model|not a valid model|model\b.{0,80}\bdoes not exist",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"(api|access|auth\w*)[ _-]?(key|token)\b|unauthori[sz]ed", re.IGNORECASE)
_FLAGGED = re.compile(r"flagged|moderation|content[ _](filter|policy|management)", re.IGNORECASE)
_NO_CREDIT = re.compile(
    r"insufficient[ _](quota|balance|credit)|exceeded your current quota|credit balance is too low"
    r"|spend[ _]limit|api usage limits",
    re.IGNORECASE,
)


def failure(
    status: int,
    body: str,
    where: str,
    wait: float | None = None,
    key_remedy: str = "set DATAFORGE_API_KEY in the environment",
) -> ModelError:
    """The error for an answer with `status`.

    `wait` is what `retry_after` read from its headers; `key_remedy` what to do for another key.
    """
    words = _said(body)
    said = f"{where} answered HTTP {status}: {words}"
    if status in (400, 413, 422) and _TOO_LONG.search(body):
        return ContextOverflow(said)
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(body)):
        return FatalModelError(f"{said}. The account has no credit left: top it up")
    if status == 429 or (status in (503, 529) and wait is not None):
        return RateLimited(said, wait)
    if status in (408, 409, 425) or status >= 500:
        return TransientModelError(said)
    # What it says, not all of the body, which may repeat a prompt that says anything.
    if status == 400 and _NO_KEY.search(words):
        return FatalModelError(f"{said}. {_remedy(401, key_remedy)}")
    if status == 400 and _NO_MODEL.search(words):
        return FatalModelError(f"{said}. {_remedy(404, key_remedy)}")
    if status in (400, 413, 422, 451) or (status == 403 and _FLAGGED.search(body)):
        return RequestRefused(said)
    return FatalModelError(f"{said}. {_remedy(status, key_remedy)}")


def check_able(where: str, params: Params, *able: str) -> None:
    """Raises FatalModelError when `n`, `tools` or `logprobs` are asked for and not in `able`."""
    asked = {
        "n": params.n != 1,
        "tools": bool(params.tools),
        "logprobs": params.logprobs is not None,
    }
    for name, wanted in asked.items():
        if wanted and name not in able:
            raise FatalModelError(
                f"{where}: cannot take {name!r}, which a node asks for: give the role a model "
                "that can, or have the node leave it out"
            )


def _remedy(status: int, key_remedy: str) -> str:
    if status == 401:
        return f"The key is missing or wrong: {key_remedy}"
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
    except (ValueError, RecursionError):
        found = None
    while isinstance(found, Mapping):
        found = next((found[key] for key in ("error", "message", "detail") if key in found), None)
    if isinstance(found, str):
        text = found
    line = " ".join(clean(text).split())
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
