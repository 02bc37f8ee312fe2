"""vLLM is not installed where these run; a stand-in takes exactly the names that it publishes.

`NAMES` is what the transport uses of vLLM, each with the arguments or fields it gives or reads. The
stand-in refuses any other, and where vLLM is installed, its own signatures are held against it.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, make_dataclass
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    ModelError,
    RequestRefused,
    TransientModelError,
    UnknownModel,
)
from dataforge.models.base import Message, Params, Reply, TokenLogprob, ToolCall
from dataforge.models.specs import open_model, weights_of

NAMES: Mapping[str, tuple[str, ...]] = {
    "vllm:AsyncEngineArgs": ("model", "max_model_len", "enable_log_requests"),
    "vllm:SamplingParams": (
        *("n", "temperature", "top_p", "max_tokens", "seed", "logprobs"),
        *("structured_outputs", "output_kind"),
    ),
    "vllm.sampling_params:StructuredOutputsParams": ("json",),
    "vllm.outputs:CompletionOutput": ("text", "token_ids", "logprobs", "finish_reason"),
    "vllm.outputs:RequestOutput": ("outputs", "num_cached_tokens"),
    "vllm.logprobs:Logprob": ("logprob", "decoded_token"),
    "vllm.v1.engine.async_llm:AsyncLLM.from_engine_args": ("engine_args",),
    "vllm.v1.engine.async_llm:AsyncLLM.generate": ("prompt", "sampling_params", "request_id"),
    "vllm.v1.engine.async_llm:AsyncLLM.shutdown": (),
    "vllm.sampling_params:RequestOutputKind.FINAL_ONLY": (),
    "vllm.exceptions:VLLMError": (),
    "vllm.exceptions:VLLMClientError": (),
    "vllm.v1.engine.exceptions:EngineDeadError": (),
    "vllm.v1.engine.exceptions:EngineGenerateError": (),
}
HAS_VLLM = find_spec("vllm") is not None
ASKED = [Message("user", "Say hello.")]


@pytest.mark.slow
@pytest.mark.skipif(not HAS_VLLM, reason="vLLM is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_vllm_itself_has_the_names_that_are_used(name: str) -> None:
    module, _, path = name.partition(":")
    found: object = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if NAMES[name]:
        assert callable(found)
        assert set(NAMES[name]) <= inspect.signature(found).parameters.keys()


class VLLMError(Exception): ...


class VLLMClientError(VLLMError): ...


class EngineDeadError(VLLMError): ...


class EngineGenerateError(VLLMError): ...


def taking(name: str) -> type:
    """A class that takes exactly the arguments that `NAMES` lists."""
    fields = [(each, object, field(default=None)) for each in NAMES[name]]
    return make_dataclass(name.rpartition(":")[2], fields)


Completion = taking("vllm.outputs:CompletionOutput")
Output = taking("vllm.outputs:RequestOutput")
Logprob = taking("vllm.logprobs:Logprob")
Gives = Callable[[SimpleNamespace], object]


@dataclass
class Engine:
    """`AsyncLLM`: what `gives` returns of a request is its one output, what it raises its error."""

    args: SimpleNamespace
    gives: Gives = lambda sampling: Output([Completion("Hello.", [1, 2], None, "stop")], 3)
    asked: list[tuple[object, SimpleNamespace]] = field(default_factory=list)
    down: int = 0

    @property
    def model_config(self) -> SimpleNamespace:
        return SimpleNamespace(max_model_len=self.args.max_model_len or 32)

    async def generate(
        self, prompt: object, sampling_params: SimpleNamespace, request_id: str
    ) -> AsyncIterator[object]:
        self.asked.append((prompt, sampling_params))
        found = self.gives(sampling_params)
        if found is not None:
            yield found

    def shutdown(self) -> None:
        self.down += 1


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines opened so far, in the stand-in that is put in vLLM's place."""
    opened: list[Engine] = []

    class AsyncLLM:
        @classmethod
        def from_engine_args(cls, engine_args: SimpleNamespace) -> Engine:
            if engine_args.model == "broken":
                raise VLLMClientError("no such weights")
            opened.append(Engine(engine_args))
            return opened[-1]

    class AutoTokenizer:
        @classmethod
        def from_pretrained(cls, name: str) -> AutoTokenizer:
            return cls()

        def apply_chat_template(
            self,
            conversation: list[dict[str, str]],
            *,
            tokenize: bool,
            add_generation_prompt: bool,
            return_dict: bool,
        ) -> list[int]:
            return [ord(letter) for letter in conversation[-1]["content"]]

    sampling, kinds = taking("vllm:SamplingParams"), SimpleNamespace(FINAL_ONLY="final")

    def checked(**given: object) -> object:
        if given["temperature"] == 0.0 and given["n"] != 1:
            raise VLLMClientError("n must be 1 when using greedy sampling")
        return sampling(**given)

    contents: dict[str, dict[str, object]] = {
        "vllm": {"AsyncEngineArgs": taking("vllm:AsyncEngineArgs"), "SamplingParams": checked},
        "vllm.exceptions": {"VLLMError": VLLMError, "VLLMClientError": VLLMClientError},
        "vllm.sampling_params": {
            "RequestOutputKind": kinds,
            "StructuredOutputsParams": taking("vllm.sampling_params:StructuredOutputsParams"),
        },
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.async_llm": {"AsyncLLM": AsyncLLM},
        "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
        "transformers": {"AutoTokenizer": AutoTokenizer},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return opened


@pytest.mark.skipif(HAS_VLLM, reason="vLLM is installed")
def test_without_vllm_a_local_model_says_what_to_install() -> None:
    with pytest.raises(UnknownModel, match=r"pip install 'dataforge-dag\[vllm\]'"):
        open_model("vllm:Qwen/Qwen3-8B")


def test_a_local_model_has_its_weights_by_name() -> None:
    assert weights_of("vllm:Qwen/Qwen3-8B") == weights_of("http://h/v1#qwen3-8b")


async def test_a_reply_comes_back(engines: list[Engine]) -> None:
    model = open_model("vllm:Qwen/Qwen3-8B?context=64&limit=5")
    params = Params(seed=9, max_tokens=20, schema={"type": "object"})
    reply = await model.complete(ASKED, params)
    assert reply == Reply(text="Hello.", finish="stop", tokens_in=10, tokens_out=2, tokens_cached=3)
    (engine,) = engines
    ((prompt, sampling),) = engine.asked
    assert (engine.args.model, engine.args.max_model_len) == ("Qwen/Qwen3-8B", 64)
    assert prompt == {"prompt_token_ids": [ord(letter) for letter in "Say hello."]}
    assert (sampling.seed, sampling.max_tokens, sampling.output_kind) == (9, 20, "final")
    assert sampling.structured_outputs.json == {"type": "object"}
    assert (model.limit, model.weights) == (5, "served:qwen3-8b")
    await model.close()
    await model.close()
    assert engine.down == 1
    with pytest.raises(FatalModelError, match="after it was closed"):
        await model.complete(ASKED, Params(max_tokens=2))


async def test_choices_and_log_probabilities_come_back(engines: list[Engine]) -> None:
    places = [
        {7: Logprob(-2.0, "H"), 8: Logprob(-0.5, "J"), 9: Logprob(-9.0, "K")},
        {8: Logprob(float("-inf"), None)},
    ]
    choices = [
        Completion("Hi", [7, 8], places, "length"),
        Completion("Ho", [1], None, "stop"),
        Completion("Hu", [1], None, "repetition"),
    ]
    model = open_model("vllm:m")
    engines[0].gives = lambda sampling: Output(choices)
    reply = await model.complete(ASKED, Params(n=3, logprobs=2, max_tokens=5))
    assert (reply.finish, reply.others, reply.tokens_out) == ("length", ("Ho",), 4)
    assert reply.logprobs == (
        TokenLogprob("H", -2.0, (("J", -0.5), ("H", -2.0))),
        TokenLogprob("", -9999.0, (("", -9999.0),)),
    )
    assert (engines[0].asked[0][1].n, engines[0].asked[0][1].logprobs) == (3, 2)


def caused(cause: Exception) -> Exception:
    error = EngineGenerateError()
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (EngineDeadError("gone"), FatalModelError),
        (VLLMClientError("bad"), RequestRefused),
        (ValueError("bad"), RequestRefused),
        (caused(ValueError("bad")), RequestRefused),
        (caused(RuntimeError("oops")), TransientModelError),
        (VLLMError("busy"), TransientModelError),
    ],
)
async def test_each_failure_is_typed(
    engines: list[Engine], raised: Exception, kind: type[ModelError]
) -> None:
    def fails(sampling: object) -> object:
        raise raised

    model = open_model("vllm:m")
    engines[0].gives = fails
    with pytest.raises(ModelError) as caught:
        await model.complete(ASKED, Params(max_tokens=5))
    assert type(caught.value) is kind
    assert "EngineGenerateError" not in str(caught.value)


@pytest.mark.parametrize("reason", ["nothing", None, "abort", "error"])
async def test_a_reply_that_was_broken_off_may_be_tried_again(
    engines: list[Engine], reason: str | None
) -> None:
    output = None if reason == "nothing" else Output([Completion("Hel", [1], None, reason)])
    model = open_model("vllm:m")
    engines[0].gives = lambda sampling: output
    with pytest.raises(TransientModelError, match="broken off"):
        await model.complete(ASKED, Params(max_tokens=5))


async def test_what_cannot_be_done_is_refused(engines: list[Engine]) -> None:
    model = open_model("vllm:m")
    with pytest.raises(ContextOverflow, match="reply of 30"):
        await model.complete(ASKED, Params(max_tokens=30))
    with pytest.raises(RequestRefused, match="greedy"):
        await model.complete(ASKED, Params(n=2, temperature=0.0, max_tokens=5))
    with pytest.raises(FatalModelError, match="cannot take 'tools'"):
        await model.complete(ASKED, Params(tools=({},), max_tokens=5))
    called = Message("assistant", "", tool_calls=(ToolCall("c", "f", "{}"),))
    with pytest.raises(FatalModelError, match="vllm serve"):
        await model.complete([*ASKED, called], Params(max_tokens=5))
    with pytest.raises(UnknownModel, match="no such weights"):
        open_model("vllm:broken")
