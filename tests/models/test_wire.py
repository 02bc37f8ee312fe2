from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.models.base import Message, Params, Reply
from dataforge.models.wire import Malformed, chat_reply, chat_request


def test_a_request_carries_all_parameters() -> None:
    params = Params(temperature=0.0, top_p=0.9, max_tokens=7, seed=3, schema={"type": "object"})
    assert chat_request([Message("system", "S"), Message("user", "U")], params) == {
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        "temperature": 0.0,
        "top_p": 0.9,
        "max_tokens": 7,
        "seed": 3,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": {"type": "object"}},
        },
    }


def test_without_a_schema_no_format_is_asked_for() -> None:
    assert "response_format" not in chat_request([Message("user", "U")], Params())


@given(st.text(alphabet=st.characters(codec=None, categories=None)))
def test_any_text_can_be_sent(text: str) -> None:
    request = chat_request([Message("user", text + "\ud800")], Params())
    sent = json.dumps(request, ensure_ascii=False).encode()
    content = json.loads(sent)["messages"][0]["content"]
    assert content.endswith("\ufffd")


def test_text_beyond_the_basic_plane_arrives_as_it_is() -> None:
    request = chat_request([Message("user", "a 🙂 z\x00")], Params())
    assert request["messages"] == [{"role": "user", "content": "a 🙂 z\x00"}]


def test_a_reply_is_read_with_its_usage() -> None:
    body = {
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    }
    assert chat_reply(body) == Reply(text="Hi", finish="length", tokens_in=5, tokens_out=2)


def test_tokens_read_before_and_spent_on_reasoning_are_counted_apart() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 6},
    }
    reply = chat_reply({"choices": [{"message": {"content": "yes"}}], "usage": usage})
    assert (reply.tokens_in, reply.tokens_cached) == (9, 8)
    assert (reply.tokens_out, reply.tokens_reasoning) == (7, 6)


def test_a_withheld_reply_is_empty_and_missing_usage_is_zero() -> None:
    body = {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}
    assert chat_reply(body) == Reply(text="", finish="refused", tokens_in=0, tokens_out=0)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{"text": "completion, not chat"}]},
        {"choices": [{"message": {"content": [1]}}]},
    ],
)
def test_anything_else_is_malformed(body: object) -> None:
    with pytest.raises(Malformed):
        chat_reply(body)
