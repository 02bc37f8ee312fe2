"""vLLM inside this process: a model on this machine's GPU without a server.

Thin: vLLM batches what is in flight and does the rest. UNTESTED on a GPU so far: it is written
against the signatures that vLLM 0.30 to 0.33 publish, which the extra is pinned to, and has not
run. Where it fails, `vllm serve` and `http://localhost:8000/v1#MODEL` do the same, and tools and
reasoning apart from the text besides, for which a server has parsers. One GPU, no multi-node, no
LoRA.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    RequestRefused,
    TransientModelError,
    UnknownModel,
)
from dataforge.models.base import Finish, Message, Params, Reply, TokenLogprob
from dataforge.models.failure import check_able
from dataforge.models.weights import served_weights
from dataforge.models.wire import LEAST_LOGPROB

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput

__all__ = ["LocalModel"]

# A reply stopped for its repetitions did not come to its own end either.
_FINISH: Mapping[str | None, Finish] = {"stop": "stop", "length": "length", "repetition": "length"}


class LocalModel:
    """A Hugging Face model by name or folder, run by vLLM in this process."""

    def __init__(
        self,
        model: str,
        *,
        weights: str | None = None,
        limit: int = 256,
        context: int | None = None,
    ) -> None:
        """`context` is in tokens, prompt and reply together; None for the model's own.

        Raises UnknownModel when vLLM is missing or cannot load the model.
        """
        if find_spec("vllm") is None:
            raise UnknownModel(
                f"vllm:{model}: vLLM is not installed; pip install 'dataforge-dag[vllm]' "
                "(it needs a GPU)"
            )
        from transformers import AutoTokenizer
        from vllm import AsyncEngineArgs
        from vllm.exceptions import VLLMError
        from vllm.v1.engine.async_llm import AsyncLLM

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(model)
            self._engine = AsyncLLM.from_engine_args(
                AsyncEngineArgs(model=model, max_model_len=context, enable_log_requests=False)
            )
        except (OSError, RuntimeError, ValueError, VLLMError) as error:
            raise UnknownModel(f"vllm:{model}: vLLM cannot load it: {error}") from error
        self._name = f"vllm:{model}"
        self._weights = weights or served_weights(model)
        self._limit = limit
        self._closed = False

    @property
    def weights(self) -> str:
        """Identity of the weights, by the model's name unless it was declared."""
        return self._weights

    @property
    def limit(self) -> int:
        """Most requests worth having in flight at once."""
        return self._limit

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """One reply; ContextOverflow when prompt and reply do not fit."""
        from vllm.exceptions import VLLMClientError, VLLMError
        from vllm.v1.engine.exceptions import EngineDeadError

        if self._closed:
            raise FatalModelError(f"{self._name}: used after it was closed")
        check_able(self._name, params, "n", "logprobs")
        prompt = self._prompt(messages, params.max_tokens)
        ended = None
        try:
            sampling = _sampling(params)
            async for output in self._engine.generate(prompt, sampling, uuid.uuid4().hex):
                ended = output
        except EngineDeadError as error:
            raise FatalModelError(f"{self._name}: the engine died: {error}") from error
        except (VLLMError, ValueError) as error:
            cause = error.__cause__ or error
            if isinstance(cause, VLLMClientError | ValueError):
                raise RequestRefused(f"{self._name}: vLLM refused the request: {cause}") from error
            raise TransientModelError(f"{self._name}: {cause}") from error
        if ended is None or ended.outputs[0].finish_reason not in _FINISH:
            raise TransientModelError(f"{self._name}: the reply was broken off")
        said, *others = ended.outputs
        return Reply(
            text=said.text,
            finish=_FINISH[said.finish_reason],
            tokens_in=len(prompt["prompt_token_ids"]),
            tokens_out=sum(len(each.token_ids) for each in ended.outputs),
            tokens_cached=ended.num_cached_tokens or 0,
            others=tuple(each.text for each in others if each.finish_reason == "stop"),
            logprobs=_likelihoods(said, params.logprobs),
        )

    async def close(self) -> None:
        """Stops the engine."""
        if not self._closed:
            self._closed = True
            self._engine.shutdown()

    def _prompt(self, messages: Sequence[Message], max_tokens: int) -> Mapping[str, list[int]]:
        if any(each.tool_calls for each in messages):
            raise FatalModelError(
                f"{self._name}: takes no tool calls back: serve the model with `vllm serve`, and "
                "name it by http://localhost:8000/v1#MODEL"
            )
        turns = [{"role": each.role, "content": each.content} for each in messages]
        tokens: list[int] = self._tokenizer.apply_chat_template(
            turns, tokenize=True, add_generation_prompt=True, return_dict=False
        )
        context = self._engine.model_config.max_model_len
        if len(tokens) + max_tokens > context:
            raise ContextOverflow(
                f"{self._name}: a prompt of {len(tokens)} tokens and a reply of {max_tokens} do "
                f"not fit a context of {context}; shorten one of them"
            )
        return {"prompt_token_ids": tokens}


def _sampling(params: Params) -> SamplingParams:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    shape = StructuredOutputsParams(json=dict(params.schema)) if params.schema else None
    return SamplingParams(
        n=params.n,
        temperature=params.temperature,
        top_p=params.top_p,
        max_tokens=params.max_tokens,
        seed=params.seed,
        logprobs=params.logprobs,
        structured_outputs=shape,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _likelihoods(said: CompletionOutput, top: int | None) -> tuple[TokenLogprob, ...]:
    """What vLLM tells of each token: those likeliest, and the one it took if that is none."""
    if top is None or said.logprobs is None:
        return ()
    told = []
    for token, places in zip(said.token_ids, said.logprobs, strict=False):
        pairs = {
            each: (place.decoded_token or "", max(float(place.logprob), LEAST_LOGPROB))
            for each, place in places.items()
        }
        ranked = sorted(pairs.values(), key=lambda pair: -pair[1])[:top]
        told.append(TokenLogprob(*pairs[token], tuple(ranked)))
    return tuple(told)
