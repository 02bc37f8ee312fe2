from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import web

from dataforge.errors import FatalModelError, ModelError, RateLimited, UnknownModel
from dataforge.models.base import Message, Params, Reply, TokenLogprob, ToolCall
from dataforge.models.specs import open_model

HAS_LITELLM = find_spec("litellm") is not None


@pytest.mark.skipif(HAS_LITELLM, reason="litellm is installed")
def test_without_litellm_a_hosted_model_says_what_to_install() -> None:
    with pytest.raises(UnknownModel, match=r"pip install 'dataforge-dag\[hosted\]'"):
        open_model("openai/gpt-4o-mini")


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.2"])
def test_a_hostile_release_is_never_imported(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('it ran')")
    about = tmp_path / f"litellm-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnknownModel, match="steal credentials"):
        open_model("openai/gpt-4o-mini")


FAKE = """
import os, types
print("cost map:", os.environ["LITELLM_LOCAL_MODEL_COST_MAP"])
def get_llm_provider(model): ...
def get_supported_openai_params(model): return ["tools"]
def acompletion(): ...
"""


@pytest.mark.parametrize("before", ["", "False", "https://example.org/prices.json"])
def test_no_cost_map_is_fetched_whatever_the_environment_says(tmp_path: Path, before: str) -> None:
    (tmp_path / "litellm.py").write_text(FAKE)
    code = "from dataforge.models.specs import open_model; open_model('openai/gpt-4o-mini')"
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, "LITELLM_LOCAL_MODEL_COST_MAP": before}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "cost map: True"


def test_one_release_is_pinned_by_its_version_and_its_content() -> None:
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    (pin,) = extras["optional-dependencies"]["hosted"]
    lines = (root / "requirements-hosted.txt").read_text().splitlines()
    told = [line for line in lines if line and not line.startswith("#")]
    assert told[0] == f"{pin} \\"
    assert re.fullmatch(r"litellm==[0-9.]+", pin)
    assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}", line) for line in told[1:])
    assert len(told) > 1


@pytest.mark.slow
@pytest.mark.skipif(not HAS_LITELLM, reason="litellm is not installed")
async def test_litellm_brings_home_all_of_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    function = {"name": "look", "arguments": '{"at": "sky"}'}
    message = {
        "role": "assistant",
        "content": "Hello.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    likely = {"token": "H", "logprob": -0.5, "top_logprobs": [{"token": "J", "logprob": -2.0}]}
    other = {"index": 1, "finish_reason": "stop", "message": {"content": "Bye."}}
    usage = {
        "prompt_tokens": 4,
        "completion_tokens": 2,
        "total_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    first = {
        "index": 0,
        "finish_reason": "tool_calls",
        "message": message,
        "logprobs": {"content": [likely]},
    }
    asked: list[dict[str, object]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(await request.json())
        return web.json_response({"choices": [first, other], "usage": usage})

    app = web.Application()
    app.router.add_post("/chat/completions", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    monkeypatch.setenv("OPENAI_API_BASE", f"http://{host}:{port}")
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
    model = open_model("openai/gpt-4o-mini")
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    params = Params(n=2, tools=(tool,), logprobs=1)
    reply = await model.complete([Message("user", "Say hello.")], params)
    assert (asked[0]["n"], asked[0]["tools"], asked[0]["top_logprobs"]) == (2, [tool], 1)
    assert reply == Reply(
        text="Hello.",
        finish="tools",
        tokens_in=4,
        tokens_out=2,
        tokens_cached=3,
        tokens_reasoning=1,
        reasoning="Hm.",
        tool_calls=(ToolCall("c", "look", '{"at": "sky"}'),),
        others=("Bye.",),
        logprobs=(TokenLogprob("H", -0.5, (("J", -2.0),)),),
    )
    assert "litellm.proxy.proxy_server" not in sys.modules
    await model.close()
    await runner.cleanup()
    with pytest.raises(FatalModelError, match="cannot take 'n'"):
        await open_model("anthropic/claude-sonnet-4-5").complete([], Params(n=2))


@pytest.mark.slow
@pytest.mark.skipif(not HAS_LITELLM, reason="litellm is not installed")
async def test_litellm_reaches_an_endpoint_and_its_failures_are_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(
        [
            (
                200,
                '{"choices": [{"index": 0, "finish_reason": "stop", "message": '
                '{"role": "assistant", "content": "Hello."}}], "usage": {"prompt_tokens": 4, '
                '"completion_tokens": 2, "total_tokens": 6}}',
            ),
            (429, "{}"),
            (401, '{"error": {"message": "wrong: planted-key"}}'),
        ]
    )

    async def answer(request: web.Request) -> web.StreamResponse:
        status, body = next(answers)
        headers = {"Retry-After": "3"}
        return web.Response(
            status=status, text=body, headers=headers, content_type="application/json"
        )

    app = web.Application()
    app.router.add_post("/chat/completions", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    monkeypatch.setenv("OPENAI_API_BASE", f"http://{host}:{port}")
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
    model = open_model("openai/gpt-4o-mini")
    asked = [Message("user", "Say hello.")]
    assert (await model.complete(asked, Params())).text == "Hello."
    with pytest.raises(RateLimited) as limited:
        await model.complete(asked, Params())
    assert limited.value.retry_after == 3.0
    with pytest.raises(FatalModelError, match="set OPENAI_API_KEY") as refused:
        await model.complete(asked, Params())
    assert "planted-key" not in str(refused.value)
    await model.close()
    await runner.cleanup()


def test_a_provider_that_litellm_does_not_know_is_refused() -> None:
    with pytest.raises(ModelError):
        open_model("no-such-provider/model")
