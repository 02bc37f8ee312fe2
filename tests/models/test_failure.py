from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    ModelError,
    RateLimited,
    RequestRefused,
    TransientModelError,
)
from dataforge.models.failure import failure, retry_after

OPENAI_LONG = (
    '{"error": {"message": "This model\'s maximum context length is 8192 tokens.", '
    '"code": "context_length_exceeded"}}'
)
VLLM_LONG = '{"object": "error", "message": "... is longer than the maximum context length"}'
LLAMA_LONG = '{"error": {"code": 400, "type": "exceed_context_size_error", "message": "too big"}}'
FILTERED = (
    '{"error": {"message": "The response was filtered due to the prompt triggering Azure '
    'OpenAI\'s content management policy.", "code": "content_filter"}}'
)
ANTHROPIC_LONG = '{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}'


@pytest.mark.parametrize("body", [OPENAI_LONG, VLLM_LONG, LLAMA_LONG, ANTHROPIC_LONG])
def test_a_prompt_too_long_is_an_overflow_in_each_servers_words(body: str) -> None:
    assert isinstance(failure(400, body, "m"), ContextOverflow)


@pytest.mark.parametrize(
    ("status", "body", "kind", "remedy"),
    [
        (400, '{"error": {"message": "bad temperature"}}', RequestRefused, "bad temperature"),
        (400, FILTERED, RequestRefused, "content management policy"),
        (422, '{"detail": [{"input": "my api key"}]}', RequestRefused, "my api key"),
        (413, "", RequestRefused, "413"),
        (403, '{"error": {"message": "your input was flagged"}}', RequestRefused, "flagged"),
        (400, '{"error": {"message": "API key not valid."}}', FatalModelError, "KEY"),
        (400, '{"error": {"message": "x/y is not a valid model ID"}}', FatalModelError, "/v1"),
        (400, '{"error": {"message": "Invalid model name given"}}', FatalModelError, "/v1"),
        (405, "", FatalModelError, "which part"),
        (401, '{"error": "no key"}', FatalModelError, "DATAFORGE_API_KEY"),
        (402, "", FatalModelError, "credit"),
        (403, "", FatalModelError, "access"),
        (404, '{"detail": "Not Found"}', FatalModelError, "/v1"),
        (307, "", FatalModelError, "Redirects"),
        (408, "", TransientModelError, "408"),
        (429, "slow down", RateLimited, "slow down"),
        (429, '{"error": {"code": "insufficient_quota", "message": "x"}}', FatalModelError, "top"),
        (500, "<html>\n  <b>oops</b>", TransientModelError, "<html> <b>oops</b>"),
        (503, "", TransientModelError, "503"),
        (529, "overloaded", TransientModelError, "overloaded"),
    ],
)
def test_each_status_has_its_error_and_its_remedy(
    status: int, body: str, kind: type[ModelError], remedy: str
) -> None:
    error = failure(status, body, "m at http://h/v1")
    assert type(error) is kind
    assert str(error).startswith(f"m at http://h/v1 answered HTTP {status}: ")
    assert remedy in str(error)
    assert "\n" not in str(error)


def test_an_endpoint_that_says_when_to_come_back_is_a_rate_limit() -> None:
    error = failure(503, "", "m", 7.0)
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7.0


def test_a_long_complaint_is_cut() -> None:
    assert len(str(failure(500, "x" * 10_000, "m"))) < 400


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("0.25", 0.25),
        ("-5", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_read_or_left(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_retry_after_as_a_date_counts_from_now() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    found = retry_after(format_datetime(later, usegmt=True))
    assert found is not None
    assert 3500 < found <= 3600
