from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dataforge.models.base import Message, Params, Reply, TokenLogprob, ToolCall
from dataforge.models.wire import Malformed, chat_reply, chat_request

WRITER = TypeAdapter(Reply)


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


def test_a_request_carries_choices_tools_and_log_probabilities_only_when_asked() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"title": "\ud83d"}}}
    asked = [Message("user", "U")]
    plain = chat_request(asked, Params())
    assert plain.keys() == {"messages", "temperature", "top_p", "max_tokens", "seed"}
    full = chat_request(asked, Params(n=3, tools=(tool,), logprobs=0))
    assert {name: full[name] for name in full.keys() - plain.keys()} == {
        "n": 3,
        "tools": [
            {"type": "function", "function": {"name": "look", "parameters": {"title": "\ufffd"}}}
        ],
        "logprobs": True,
        "top_logprobs": 0,
    }


def test_a_conversation_with_tools_goes_on() -> None:
    called = Message("assistant", "", tool_calls=(ToolCall("c1", "look", '{"at": "sky"}'),))
    request = chat_request([called, Message("tool", "blue", tool_call_id="c1")], Params())
    assert request["messages"] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at": "sky"}'},
                }
            ],
        },
        {"role": "tool", "content": "blue", "tool_call_id": "c1"},
    ]


def choice(content: object, finish: str = "stop", **message: object) -> dict[str, object]:
    return {"message": {"content": content, **message}, "finish_reason": finish}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_from_the_text(name: str) -> None:
    reply = chat_reply({"choices": [choice("42", **{name: "six by seven"})]})
    assert (reply.text, reply.reasoning) == ("42", "six by seven")


def test_tool_calls_are_kept_as_they_were_written() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":'}},
        {"function": {"name": "move", "arguments": {"to": "é"}}},
    ]
    reply = chat_reply({"choices": [choice(None, "tool_calls", tool_calls=calls)]})
    assert (reply.text, reply.finish) == ("", "tools")
    assert reply.tool_calls == (
        ToolCall("a", "look", '{"at":'),
        ToolCall("", "move", '{"to": "é"}'),
    )
    named = chat_reply({"choices": [choice(None, "stop", tool_calls=calls)]})
    assert named.finish == "tools"
    cut = chat_reply({"choices": [choice(None, "length", tool_calls=calls)]})
    assert cut.finish == "length"


def test_of_the_further_choices_the_whole_ones_are_kept() -> None:
    choices = [
        choice("one"),
        choice("two"),
        choice("cu", "length"),
        choice("no", refusal="no"),
        choice("three"),
    ]
    reply = chat_reply({"choices": choices})
    assert (reply.text, reply.others) == ("one", ("two", "three"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (choice(None, "content_filter"), ""),
        (choice("Half an ans", "content_filter"), "Half an ans"),
        (choice("Sure.", "refusal"), "Sure."),
        (choice(None, "stop", refusal="I cannot."), "I cannot."),
        (choice("x", "stop", refusal="No.", tool_calls=[{"function": {"name": "f"}}]), "No."),
    ],
)
def test_a_refused_reply_is_no_answer(given: dict[str, object], said: str) -> None:
    reply = chat_reply({"choices": [given]})
    assert (reply.text, reply.finish, reply.refusal) == ("", "refused", said)
    assert reply.tool_calls == ()


def test_log_probabilities_are_read_with_their_alternatives() -> None:
    tokens = [
        {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1}]},
        {"token": "c", "logprob": float("-inf")},
    ]
    given = {**choice("ac"), "logprobs": {"content": tokens}}
    assert chat_reply({"choices": [given]}).logprobs == (
        TokenLogprob("a", -0.5, (("b", -1.0),)),
        TokenLogprob("c", -9999.0),
    )


NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400)])
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(st.characters())
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
LIKELIHOODS = st.fixed_dictionaries(
    {}, optional={"token": JSON, "logprob": JSON, "top_logprobs": JSON}
)
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": JSON, "arguments": JSON})
CALLS = st.fixed_dictionaries({}, optional={"id": JSON, "function": FUNCTIONS | JSON})
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "content": st.text(st.characters()) | JSON,
        "reasoning": JSON,
        "reasoning_content": JSON,
        "refusal": JSON,
        "tool_calls": st.lists(CALLS | JSON, max_size=2) | JSON,
    },
)
ENDS = st.sampled_from(["stop", "length", "content_filter", "tool_calls", "error"])
CHOICES = st.fixed_dictionaries(
    {"message": MESSAGES | JSON},
    optional={
        "finish_reason": ENDS | JSON,
        "logprobs": st.fixed_dictionaries({"content": st.lists(LIKELIHOODS | JSON) | JSON}) | JSON,
    },
)
BODIES = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES | JSON, max_size=3)},
    optional={"usage": st.dictionaries(st.just("prompt_tokens"), JSON) | JSON},
)


@given(BODIES | JSON)
def test_any_json_is_a_reply_that_can_be_written_or_malformed(body: object) -> None:
    try:
        reply = chat_reply(body).cleaned()
    except Malformed as error:
        assert str(error)
        return
    written = WRITER.dump_json(reply)
    assert WRITER.validate_json(written) == reply
    assert reply.finish != "refused" or reply.text == ""


def test_arguments_nested_too_deep_to_write_are_malformed() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    calls = [{"function": {"name": "f", "arguments": deep}}]
    with pytest.raises(Malformed, match="cannot be written"):
        chat_reply({"choices": [choice(None, tool_calls=calls)]})


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
        {"choices": [choice("a"), None]},
        {"choices": [choice("half", "error")]},
        {"choices": [choice("half", "error", tool_calls=[{"function": {"name": "f"}}])]},
        {"choices": [choice(None, tool_calls={"name": "f"})]},
        {"choices": [choice(None, tool_calls=[{"function": {"arguments": "{}"}}])]},
        {"choices": [choice(None, tool_calls=[{"function": {"name": "f", "arguments": [1]}}])]},
        {"choices": [{**choice("a"), "logprobs": {"content": [{"token": "a"}]}}]},
        {"choices": [{**choice("a"), "logprobs": {"content": "a"}}]},
    ],
)
def test_anything_else_is_malformed(body: object) -> None:
    with pytest.raises(Malformed):
        chat_reply(body)
