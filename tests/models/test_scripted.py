from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dataforge.errors import FatalModelError, RateLimited, UnknownModel
from dataforge.models.base import Message, Params, Reply, Transport
from dataforge.models.scripted import Script, ScriptedModel
from dataforge.models.specs import open_model, weights_of

ASKED = [Message("user", "Say it twice.")]


def echo(messages: Sequence[Mapping[str, str]], params: Mapping[str, object]) -> str:
    return f"{messages[-1]['content']} {params['seed']}"


async def test_a_function_replies() -> None:
    model: Transport = ScriptedModel(echo)
    reply = await model.complete(ASKED, Params(seed=4))
    assert reply == Reply(text="Say it twice. 4", finish="stop", tokens_in=3, tokens_out=4)
    await model.close()
    await model.close()


async def test_a_function_may_be_async_and_say_how_it_ended() -> None:
    cut = Reply(text="and so", finish="length", tokens_in=1, tokens_out=2)

    async def reply(messages: Sequence[Mapping[str, str]], params: Mapping[str, object]) -> Reply:
        return cut

    assert await ScriptedModel(reply).complete(ASKED, Params()) is cut


async def test_a_typed_error_passes_and_a_bug_is_named() -> None:
    def limited(messages: object, params: object) -> str:
        raise RateLimited("slow", 1.0)

    def broken(messages: object, params: object) -> str:
        raise KeyError("nothing")

    async def wrong(messages: object, params: object) -> str:
        return 7  # type: ignore[return-value]

    with pytest.raises(RateLimited):
        await ScriptedModel(limited).complete(ASKED, Params())
    for script, said in ((broken, "raised KeyError"), (wrong, "returned int")):
        chosen: Script = script
        with pytest.raises(FatalModelError, match=said):
            await ScriptedModel(chosen).complete(ASKED, Params())


async def test_a_file_replies_and_declares_its_weights(tmp_path: Path) -> None:
    file = tmp_path / "replies.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "WEIGHTS = 'Big-Model'\n"
        "@dataclass\nclass Said:\n    text: 'str'\n"
        "async def reply(messages, params):\n    return Said('hello').text\n"
    )
    model = open_model(f"scripted:{file}")
    assert (await model.complete(ASKED, Params())).text == "hello"
    assert model.weights == weights_of(f"scripted:{file}") == "served:big-model"
    assert weights_of(f"scripted:{file}?weights=other") == "served:other"


def test_undeclared_weights_are_the_files_content(tmp_path: Path) -> None:
    one, other = tmp_path / "a.py", tmp_path / "b.py"
    one.write_text("def reply(m, p): return 'a'\n")
    other.write_text("def reply(m, p): return 'b'\n")
    assert weights_of(f"scripted:{one}") != weights_of(f"scripted:{other}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "defines no `def reply"),
        ("import no_such_module\n", "does not load: ModuleNotFoundError"),
        ("def reply(:\n", "does not load: SyntaxError"),
    ],
)
def test_a_file_that_is_no_script_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "replies.py"
    file.write_text(text)
    with pytest.raises(UnknownModel, match=said):
        open_model(f"scripted:{file}")


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match="no such file"):
        open_model(f"scripted:{tmp_path}/none.py")
