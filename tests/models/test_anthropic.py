from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    ModelError,
    RateLimited,
    RequestRefused,
    TransientModelError,
    UnknownModel,
)
from dataforge.models.anthropic import read_message
from dataforge.models.base import Finish, Message, Params, Reply, ToolCall
from dataforge.models.specs import open_model, read_spec, weights_of
from dataforge.models.wire import Malformed
from tests.models.scene import Endpoint, serving

GOOD = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 4, "output_tokens": 2},
}
ASKED = [Message("user", "Say hello.")]
TAKEN = {
    *("model", "max_tokens", "messages", "system", "temperature", "top_p", "tools"),
    "output_config",
}


def complaint(kind: str, message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


class Strict(Endpoint):
    """Refuses what Anthropic's own endpoint refuses of a request's form."""

    async def good(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        wrong = self._wrong(request, body)
        if wrong:
            text = complaint("invalid_request_error", wrong)
            return web.Response(status=400, text=text, content_type="application/json")
        return await super().good(request)

    @staticmethod
    def _wrong(request: web.Request, body: dict[str, object]) -> str:
        if request.headers.get("anthropic-version") != "2023-06-01":
            return "anthropic-version: header is required"
        if body.keys() - TAKEN:
            return f"{sorted(body.keys() - TAKEN)}: Extra inputs are not permitted"
        turns = body["messages"]
        assert isinstance(turns, list)
        roles = [turn["role"] for turn in turns]
        if not roles or roles[0] != "user" or any(a == b for a, b in pairwise(roles)):
            return f"messages: roles must alternate, starting with user: {roles}"
        for block in (block for turn in turns for block in turn["content"]):
            if block["type"] == "text" and not block["text"]:
                return "messages: text content blocks must be non-empty"
        return ""


@pytest.fixture
async def endpoint(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Endpoint]:
    for name in ("ANTHROPIC_API_KEY", "DATAFORGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    spec = "anthropic:claude-sonnet-4-5?url={url}{options}"
    async with serving("/v1/messages", Strict(spec, GOOD)) as endpoint:
        yield endpoint


async def test_a_reply_comes_back(endpoint: Endpoint) -> None:
    model = endpoint.open()
    asked = [Message("system", "Be brief."), Message("system", "Be kind."), *ASKED]
    reply = await model.complete(asked, Params(temperature=0.2, max_tokens=9, seed=3))
    assert reply == Reply(text="Hello.", finish="stop", tokens_in=4, tokens_out=2)
    assert model.weights == "served:claude-sonnet-4-5"
    assert endpoint.bodies == [
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}],
            "system": "Be brief.\n\nBe kind.",
            "temperature": 0.2,
        }
    ]


async def test_an_address_may_end_in_the_version_or_not(endpoint: Endpoint) -> None:
    for ending in ("", "/", "/v1", "/v1/"):
        model = open_model(f"anthropic:claude-sonnet-4-5?url={endpoint.url}{ending}")
        assert (await model.complete(ASKED, Params())).text == "Hello."
        await model.close()


async def test_turns_of_one_side_are_one_turn(endpoint: Endpoint) -> None:
    asked = [Message("user", "One."), Message("user", "Two \ud83d."), Message("assistant", "Yes?")]
    await endpoint.open().complete([*asked, *ASKED], Params())
    turns = endpoint.bodies[0]["messages"]
    assert isinstance(turns, list)
    assert [[block["text"] for block in turn["content"]] for turn in turns] == [
        ["One.", "Two \ufffd."],
        ["Yes?"],
        ["Say hello."],
    ]


async def test_a_conversation_with_tools_goes_there_and_back(endpoint: Endpoint) -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    function = {"name": "look", "description": "Looks.", "parameters": schema}
    asked = [
        *ASKED,
        Message("assistant", "", tool_calls=(ToolCall("t1", "look", '{"at": "sky"}'),)),
        Message("tool", "blue", tool_call_id="t1"),
        Message("user", "And now?"),
    ]
    params = Params(tools=({"type": "function", "function": function},))
    await endpoint.open().complete(asked, params)
    (body,) = endpoint.bodies
    assert body["tools"] == [{"name": "look", "description": "Looks.", "input_schema": schema}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Say hello."}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "sky"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "blue"},
                {"type": "text", "text": "And now?"},
            ],
        },
    ]


async def test_a_schema_goes_out_as_structured_output(endpoint: Endpoint) -> None:
    schema = {"type": "object", "properties": {"mark": {"type": "integer"}}}
    await endpoint.open().complete(ASKED, Params(schema=schema))
    await endpoint.open("&schema=off").complete(ASKED, Params(schema=schema))
    closed = {**schema, "additionalProperties": False}
    assert endpoint.bodies[0]["output_config"] == {
        "format": {"type": "json_schema", "schema": closed}
    }
    assert "output_config" not in endpoint.bodies[1]


async def test_sampling_at_its_defaults_or_switched_off_is_not_sent(endpoint: Endpoint) -> None:
    await endpoint.open().complete(ASKED, Params(temperature=1.0))
    await endpoint.open("&sampling=off").complete(ASKED, Params(temperature=1.5, top_p=0.5))
    await endpoint.open().complete(ASKED, Params(temperature=0.0, top_p=0.5))
    sent = [{name: body.get(name) for name in ("temperature", "top_p")} for body in endpoint.bodies]
    assert sent[:2] == [{"temperature": None, "top_p": None}] * 2
    assert sent[2] == {"temperature": 0.0, "top_p": 0.5}


SYSTEM_LATE = [*ASKED, Message("system", "Be brief.")]


@pytest.mark.parametrize(
    ("messages", "params", "said"),
    [
        (ASKED, Params(temperature=1.2), "1.2 is above 1"),
        (ASKED, Params(n=2), "cannot take 'n'"),
        (ASKED, Params(logprobs=0), "cannot take 'logprobs'"),
        (ASKED, Params(tools=({"name": "look"},)), "a tool is"),
        (SYSTEM_LATE, Params(), "put it first"),
    ],
)
async def test_what_anthropic_cannot_do_is_refused_before_it_is_asked(
    endpoint: Endpoint, messages: list[Message], params: Params, said: str
) -> None:
    with pytest.raises(FatalModelError, match=said):
        await endpoint.open().complete(messages, params)
    assert endpoint.bodies == []


async def test_tool_arguments_that_are_no_object_cannot_go_back(endpoint: Endpoint) -> None:
    called = Message("assistant", "", tool_calls=(ToolCall("t1", "look", '{"at":'),))
    with pytest.raises(RequestRefused, match="no JSON object"):
        await endpoint.open().complete([*ASKED, called], Params())


@pytest.mark.parametrize(
    "words",
    [
        "`temperature` is deprecated for this model.",
        "`temperature` and `top_p` cannot both be specified for this model. Use only one.",
    ],
)
async def test_a_model_that_takes_no_sampling_says_what_to_do(
    endpoint: Endpoint, words: str
) -> None:
    endpoint.says(400, complaint("invalid_request_error", words))
    with pytest.raises(FatalModelError, match="sampling=off"):
        await endpoint.open().complete(ASKED, Params())
    with pytest.raises(RequestRefused):
        await endpoint.open("&sampling=off").complete(ASKED, Params())


@pytest.mark.parametrize(
    ("status", "kind", "words", "error"),
    [
        (529, "overloaded_error", "Overloaded", TransientModelError),
        (500, "api_error", "Internal server error", TransientModelError),
        (504, "timeout_error", "Timed out", TransientModelError),
        (429, "rate_limit_error", "Number of request tokens has exceeded", RateLimited),
        (429, "rate_limit_error", "You have reached your spend limit", FatalModelError),
        (400, "invalid_request_error", "Your credit balance is too low", FatalModelError),
        (400, "invalid_request_error", "your specified API usage limits", FatalModelError),
        (402, "billing_error", "Payment", FatalModelError),
        (401, "authentication_error", "invalid x-api-key", FatalModelError),
        (403, "permission_error", "Not allowed", FatalModelError),
        (404, "not_found_error", "model: claude-nope", FatalModelError),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8", ContextOverflow),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 7 + 2 > 8",
            ContextOverflow,
        ),
        (400, "invalid_request_error", "messages: at least one is required", RequestRefused),
        (413, "request_too_large", "Request exceeds the maximum size", RequestRefused),
    ],
)
async def test_each_of_its_errors_is_typed(
    endpoint: Endpoint, status: int, kind: str, words: str, error: type[ModelError]
) -> None:
    endpoint.says(status, complaint(kind, words))
    with pytest.raises(ModelError) as caught:
        await endpoint.open().complete(ASKED, Params())
    assert type(caught.value) is error
    assert words in str(caught.value)


async def test_a_rate_limit_carries_the_wait_asked_for(endpoint: Endpoint) -> None:
    for status in (429, 529):
        endpoint.says(status, complaint("overloaded_error", "Overloaded"), retry_after="7")
        with pytest.raises(RateLimited) as caught:
            await endpoint.open().complete(ASKED, Params())
        assert caught.value.retry_after == 7.0


async def test_what_is_no_message_may_be_tried_again(endpoint: Endpoint) -> None:
    for body in ("", "<html>", "[]", '{"content": "x"}', '{"content": [{"type": "text"}]}'):
        endpoint.says(200, body)
        with pytest.raises(TransientModelError):
            await endpoint.open().complete(ASKED, Params())


async def test_its_key_goes_to_no_other_host(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-key")
    (tmp_path / "key").write_text("  planted-too\n")
    await endpoint.open().complete(ASKED, Params())
    await endpoint.open("&key_env=ANTHROPIC_API_KEY").complete(ASKED, Params())
    await endpoint.open(f"&key_file={tmp_path}/key").complete(ASKED, Params())
    sent = [headers.get("x-api-key") for headers in endpoint.headers]
    assert sent == [None, "planted-key", "planted-too"]


async def test_the_key_is_never_shown(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "planted-key")
    model = endpoint.open("&key_env=MY_KEY")
    for status in (200, 400, 401, 403, 404, 429, 500, 529):
        for body in (complaint("x", "planted-key is wrong"), "x" * 195 + "planted-key", "[1]"):
            endpoint.says(status, body)
            with pytest.raises(ModelError) as caught:
                await model.complete(ASKED, Params())
            assert "plant" not in f"{caught.value!s} {caught.value!r} {model!r} {vars(model)}"


def test_without_a_key_it_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UnknownModel, match="set ANTHROPIC_API_KEY"):
        open_model("anthropic:claude-sonnet-4-5")


def test_its_spec_is_read() -> None:
    spec = read_spec("anthropic:claude-x?url=http://h:1/base&limit=4")
    assert (spec.form, spec.name) == ("anthropic", "claude-x")
    assert weights_of("anthropic:claude-x") == weights_of("anthropic/claude-x")
    for text, said in (
        ("anthropic:", "names nothing"),
        ("anthropic:c?url=h:1", "must be an address"),
        ("anthropic:c?sampling=no", "must be on or off"),
    ):
        with pytest.raises(UnknownModel, match=said):
            open_model(text)
    with pytest.raises(UnknownModel) as caught:
        open_model("anthropic:c?url=https://me:planted@h")
    assert "planted" not in str(caught.value)


def test_all_that_was_read_is_counted() -> None:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 100,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    reply = read_message({**GOOD, "usage": usage})
    assert (reply.tokens_in, reply.tokens_cached) == (123, 20)
    assert (reply.tokens_out, reply.tokens_reasoning) == (9, 5)


def test_blocks_are_told_apart() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "…"},
        {"type": "text", "text": "I "},
        {"type": "text", "text": "look."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "é"}},
    ]
    reply = read_message({**GOOD, "content": content, "stop_reason": "tool_use"})
    assert (reply.reasoning, reply.text, reply.finish) == ("Hm.", "I look.", "tools")
    assert reply.tool_calls == (ToolCall("t1", "look", '{"at": "é"}'),)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        (None, "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
        ("something_new", "length"),
        ("tool_use", "tools"),
    ],
)
def test_each_reason_to_stop_is_read(reason: str | None, finish: Finish) -> None:
    assert read_message({**GOOD, "stop_reason": reason}).finish == finish


def test_a_refusal_is_no_answer() -> None:
    cut = read_message({**GOOD, "stop_reason": "refusal"})
    assert (cut.text, cut.finish, cut.refusal) == ("", "refused", "Hello.")
    details = {"type": "refusal", "explanation": "It was about X."}
    bare = {**GOOD, "content": [], "stop_reason": "refusal", "stop_details": details}
    assert read_message(bare).refusal == "It was about X."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
KINDS = st.sampled_from(["text", "thinking", "tool_use"])
BLOCKS = st.fixed_dictionaries(
    {"type": KINDS | JSON},
    optional={"text": JSON, "thinking": JSON, "id": JSON, "name": JSON, "input": JSON},
)
BODIES = st.fixed_dictionaries(
    {"content": st.lists(BLOCKS | JSON, max_size=3)},
    optional={
        "stop_reason": st.sampled_from(["end_turn", "refusal"]) | JSON,
        "stop_details": st.dictionaries(st.just("explanation"), JSON) | JSON,
        "usage": st.dictionaries(st.sampled_from(["input_tokens", "output_tokens_details"]), JSON),
    },
)
WRITER = TypeAdapter(Reply)


@given(BODIES | JSON)
def test_any_json_is_a_reply_that_can_be_written_or_malformed(body: object) -> None:
    try:
        reply = read_message(body).cleaned()
    except Malformed:
        return
    assert WRITER.validate_json(WRITER.dump_json(reply)) == reply
