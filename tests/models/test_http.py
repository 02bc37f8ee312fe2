from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from aiohttp import web

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    ModelError,
    RateLimited,
    RequestRefused,
    TransientModelError,
    UnknownModel,
)
from dataforge.models.base import Message, Params, ToolCall
from dataforge.models.specs import open_model
from tests.models.scene import Endpoint, serving

HELLO = {"message": {"content": "Hello."}, "finish_reason": "stop"}
GOOD = {
    "choices": [HELLO],
    "usage": {"prompt_tokens": 4, "completion_tokens": 2},
}
ASKED = [Message("user", "Say hello.")]


@pytest.fixture
async def endpoint(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Endpoint]:
    async with serving(
        "/v1/chat/completions", Endpoint("{url}/v1#{name}{options}", GOOD)
    ) as endpoint:
        for name in ("DATAFORGE_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        yield endpoint


async def test_a_reply_comes_back(endpoint: Endpoint) -> None:
    model = endpoint.open()
    reply = await model.complete(ASKED, Params(seed=9, schema={"type": "object"}))
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out) == ("Hello.", "stop", 4, 2)
    assert model.weights == "served:model-1"
    (body,) = endpoint.bodies
    assert body["model"] == "Org/Model-1"
    assert body["seed"] == 9
    assert body["max_tokens"] == 512
    assert "response_format" in body
    assert "Authorization" not in endpoint.headers[0]


async def test_options_declare_the_weights_and_leave_out_schemas(endpoint: Endpoint) -> None:
    model = endpoint.open("?weights=Qwen/Qwen3-8B&schema=off&limit=3&timeout=5")
    await model.complete(ASKED, Params(schema={"type": "object"}))
    assert (model.weights, model.limit) == ("served:qwen3-8b", 3)
    assert "response_format" not in endpoint.bodies[0]


async def test_the_key_is_sent_and_never_shown(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAFORGE_API_KEY", "planted-key")
    endpoint.says(401, '{"error": {"message": "Incorrect API key provided: planted-key"}}')
    model = endpoint.open()
    with pytest.raises(FatalModelError, match="DATAFORGE_API_KEY") as caught:
        await model.complete(ASKED, Params())
    assert endpoint.headers[0]["Authorization"] == "Bearer planted-key"
    assert "planted-key" not in str(caught.value)
    assert "planted-key" not in repr(model)


async def test_openais_key_goes_to_no_other_host(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
    monkeypatch.setenv("MY_KEY", "mine")
    await endpoint.open().complete(ASKED, Params())
    await endpoint.open("?key_env=MY_KEY").complete(ASKED, Params())
    assert "Authorization" not in endpoint.headers[0]
    assert endpoint.headers[1]["Authorization"] == "Bearer mine"


async def test_the_key_is_shown_in_no_error_however_the_answer_is_cut(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("planted-key\n")
    model = endpoint.open(f"?key_file={tmp_path}/key")
    await model.complete(ASKED, Params())
    assert endpoint.headers[0]["Authorization"] == "Bearer planted-key"
    for status in (200, 301, 400, 401, 403, 404, 429, 500):
        for before in (0, 185, 195, 290, 295):
            for body in (
                "x" * before + "planted-key",
                '{"error": "' + "x" * before + 'planted-key"}',
            ):
                endpoint.says(status, body)
                with pytest.raises(ModelError) as caught:
                    await model.complete(ASKED, Params())
                assert "plant" not in f"{caught.value!s} {caught.value!r} {model!r}"


async def test_a_refused_key_out_of_a_file_names_the_file(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("planted-key")
    endpoint.says(401, "no")
    with pytest.raises(FatalModelError, match=rf"look at the file of key_file={tmp_path}/key"):
        await endpoint.open(f"?key_file={tmp_path}/key").complete(ASKED, Params())


def test_a_key_variable_that_is_not_set_is_refused() -> None:
    with pytest.raises(UnknownModel, match="key_env=NO_SUCH_KEY"):
        open_model("http://127.0.0.1:1/v1#m?key_env=NO_SUCH_KEY")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, '{"error": {"code": "context_length_exceeded", "message": "x"}}', ContextOverflow),
        (400, "bad field", RequestRefused),
        (402, "", FatalModelError),
        (403, "", FatalModelError),
        (404, "", FatalModelError),
        (500, "", TransientModelError),
        (200, "<html>a login page</html>", TransientModelError),
        (200, "[1, 2]", TransientModelError),
        (200, '{"choices": []}', TransientModelError),
        (200, '{"error": {"code": 429, "message": "slow"}}', RateLimited),
        (200, "", TransientModelError),
    ],
)
async def test_every_bad_answer_has_its_error(
    endpoint: Endpoint, status: int, body: str, kind: type[ModelError]
) -> None:
    endpoint.says(status, body)
    with pytest.raises(ModelError) as caught:
        await endpoint.open().complete(ASKED, Params())
    assert type(caught.value) is kind


async def test_a_rate_limit_carries_the_wait_asked_for(endpoint: Endpoint) -> None:
    endpoint.says(429, "slow down", Retry_After="12")
    with pytest.raises(RateLimited) as caught:
        await endpoint.open().complete(ASKED, Params())
    assert caught.value.retry_after == 12.0


async def test_a_redirect_is_not_followed(endpoint: Endpoint) -> None:
    endpoint.says(307, "", Location=f"{endpoint.url}/elsewhere")
    with pytest.raises(FatalModelError, match="Redirects are not followed"):
        await endpoint.open().complete(ASKED, Params())


async def test_a_dropped_connection_may_be_tried_again(endpoint: Endpoint) -> None:
    async def drop(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    endpoint.answer = drop
    model = endpoint.open()
    with pytest.raises(TransientModelError, match="connection failed"):
        await model.complete(ASKED, Params())
    endpoint.answer = endpoint.good
    assert (await model.complete(ASKED, Params())).text == "Hello."


async def test_a_body_cut_short_may_be_tried_again(endpoint: Endpoint) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        assert request.transport is not None
        request.transport.abort()
        return response

    endpoint.answer = cut
    with pytest.raises(TransientModelError, match="connection failed"):
        await endpoint.open().complete(ASKED, Params())


async def test_an_endpoint_that_hangs_is_given_up(endpoint: Endpoint) -> None:
    hung = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        await hung.wait()
        return web.Response()

    endpoint.answer = hang
    with pytest.raises(TransientModelError, match="no answer in time"):
        await endpoint.open("?timeout=0.1").complete(ASKED, Params())
    hung.set()


async def test_nobody_listening_may_be_tried_again() -> None:
    model = open_model("http://127.0.0.1:1/v1#m")
    with pytest.raises(TransientModelError, match=r"m at http://127\.0\.0\.1:1/v1"):
        await model.complete(ASKED, Params())
    await model.close()


async def test_a_huge_reply_and_odd_characters_arrive_whole(endpoint: Endpoint) -> None:
    text = "\ud83d\ude42\x00é" * 500_000

    async def huge(request: web.Request) -> web.StreamResponse:
        body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        return web.Response(body=BytesIO(json.dumps(body).encode()))

    endpoint.answer = huge
    assert (await endpoint.open().complete(ASKED, Params())).text == "🙂\x00é" * 500_000


async def test_what_is_loosely_json_is_read_all_the_same(endpoint: Endpoint) -> None:
    message = b'{"content": "half \\ud83d \xff", "reasoning": "\\u0000"}'
    likely = b'{"content": [{"token": "a", "logprob": -Infinity}]}'
    endpoint_body = b'{"choices": [{"message": %b, "logprobs": %b}]}' % (message, likely)

    async def loose(request: web.Request) -> web.StreamResponse:
        return web.Response(body=endpoint_body)

    endpoint.answer = loose
    reply = (await endpoint.open().complete(ASKED, Params())).cleaned()
    assert (reply.text, reply.reasoning) == ("half \ufffd \ufffd", "\0")
    assert reply.logprobs[0].logprob == -9999.0


async def test_choices_and_tools_are_asked_for_and_come_back(endpoint: Endpoint) -> None:
    calls = [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]
    choices = [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]
    endpoint.says(200, json.dumps({"choices": [*choices, HELLO]}))
    tool = {"type": "function", "function": {"name": "look"}}
    reply = await endpoint.open().complete(ASKED, Params(n=2, tools=(tool,), logprobs=1))
    assert (reply.finish, reply.others) == ("tools", ("Hello.",))
    assert reply.tool_calls == (ToolCall("c", "look", "{}"),)
    (body,) = endpoint.bodies
    assert (body["n"], body["tools"], body["top_logprobs"]) == (2, [tool], 1)


async def test_a_closed_model_says_so_and_closes_twice(endpoint: Endpoint) -> None:
    model = endpoint.open()
    await model.complete(ASKED, Params())
    await model.close()
    await model.close()
    with pytest.raises(FatalModelError, match="after it was closed"):
        await model.complete(ASKED, Params())
