from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import web

from dataforge.errors import FatalModelError, ModelError, RateLimited, UnknownModel
from dataforge.models.base import Message, Params
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
