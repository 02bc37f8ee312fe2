"""vLLM inside this process: a model on this machine's GPU without a server.

Thin: vLLM batches what is in flight and does the rest. UNTESTED on a GPU so far: it is written
against vLLM's published signatures (0.11 and later) and has not run. Where it fails, `vllm serve`
and `http://localhost:8000/v1#MODEL` do the same. One GPU, no multi-node, no LoRA.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    RequestRefused,
    TransientModelError,
    UnknownModel,
)
from dataforge.models.base import Message, Params, Reply
from dataforge.models.weights import served_weights

__all__ = ["LocalModel"]


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
        from vllm.v1.engine.async_llm import AsyncLLM

        settings = AsyncEngineArgs(model=model, max_model_len=context, enable_log_requests=False)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(model)
            self._engine = AsyncLLM.from_engine_args(settings)
        except (OSError, RuntimeError, ValueError) as error:
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
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        if self._closed:
            raise FatalModelError(f"{self._name}: used after it was closed")
        prompt = self._prompt(messages, params.max_tokens)
        shape = StructuredOutputsParams(json=dict(params.schema)) if params.schema else None
        sampling = SamplingParams(
            temperature=params.temperature,
            top_p=params.top_p,
            max_tokens=params.max_tokens,
            seed=params.seed,
            structured_outputs=shape,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        ended = None
        try:
            async for output in self._engine.generate(prompt, sampling, uuid.uuid4().hex):
                ended = output
        except EngineDeadError as error:
            raise FatalModelError(f"{self._name}: the engine died: {error}") from error
        except EngineGenerateError as error:
            raise TransientModelError(f"{self._name}: {error.__cause__ or error}") from error
        except ValueError as error:
            raise RequestRefused(f"{self._name}: vLLM refused the request: {error}") from error
        if ended is None:
            raise TransientModelError(f"{self._name}: the engine gave no reply")
        said = ended.outputs[0]
        return Reply(
            text=said.text,
            finish="length" if said.finish_reason == "length" else "stop",
            tokens_in=len(prompt["prompt_token_ids"]),
            tokens_out=len(said.token_ids),
        )

    async def close(self) -> None:
        """Stops the engine."""
        if not self._closed:
            self._closed = True
            self._engine.shutdown()

    def _prompt(self, messages: Sequence[Message], max_tokens: int) -> Mapping[str, list[int]]:
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
