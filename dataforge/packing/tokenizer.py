"""A tokenizer with its chat template, opened from a folder or from inside a GGUF file.

Shards are only as good as the tokenizer that made them, so it carries a digest of everything that
decides a token (`tokenizer.json`), which the trainer compares with the model's, and another of its
chat template. Only tokenizers that give character offsets are taken, since the loss mask needs
them. Nothing is fetched: a name on a model hub is refused, a folder on disk is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from dataforge.errors import PackingError
from dataforge.packing.gguf import gguf_file, without_progress_bars

__all__ = ["ChatTokenizer", "Encoding", "Turn", "open_tokenizer"]

Turn = Mapping[str, object]
"""One turn of a conversation as chat templates take it: role, content and what else there is."""

_Result = TypeVar("_Result")


class Encoding(Protocol):
    """One text in tokens."""

    @property
    def ids(self) -> list[int]:
        """The tokens."""
        ...

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Which characters of the text each token covers: [start, stop)."""
        ...


class _Backend(Protocol):
    """What is used of a fast tokenizer of the `tokenizers` library."""

    def encode_batch(
        self, input: list[str], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Sequence[Encoding]: ...

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str: ...

    def to_str(self, pretty: bool = False) -> str: ...


class ChatTokenizer:
    """Renders conversations by their chat template and turns text into tokens."""

    def __init__(
        self,
        name: str,
        backend: _Backend,
        template: str,
        apply_template: Callable[[list[dict[str, object]], bool], str],
        special: Mapping[int, str],
        save: Callable[[Path], object],
    ) -> None:
        self.name = name
        """What a person calls it; holds no path."""
        self.digest = _digest(backend.to_str())
        """Of vocabulary, merges, normalisation, everything that decides a token."""
        self.template_digest = _digest(template)
        """Of the chat template's source."""
        self.special = special
        """Control tokens, such as the end of a turn: id -> how it is spelt."""
        self._backend = backend
        self._apply_template = apply_template
        self._save = save

    def render(self, turns: Sequence[Turn], *, reply_next: bool = False) -> str:
        """The conversation as the model reads it; with `reply_next`, up to where it would reply.

        PackingError when the template does not take it.
        """
        from jinja2 import TemplateError

        try:
            return self._apply_template([dict(turn) for turn in turns], reply_next)
        except TemplateError as error:
            raise PackingError(str(error)) from error
        # A template is a program that came with the model, and turns may hold anything: TypeError
        # from a filter, RecursionError from what is nested too deep …
        except Exception as error:
            raise PackingError(f"{type(error).__name__}: {error}") from error

    def encode(self, texts: Sequence[str]) -> Sequence[Encoding]:
        """Tokens of rendered texts; nothing is added that the text does not spell out."""
        return self._backend.encode_batch(list(texts), add_special_tokens=False)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, control tokens left out."""
        return self._backend.decode([int(token) for token in ids], skip_special_tokens=True)

    def save(self, folder: Path) -> None:
        """Writes the files that `AutoTokenizer.from_pretrained(folder)` reads."""
        self._save(folder)


def open_tokenizer(spec: str) -> ChatTokenizer:
    """The tokenizer at `spec`: `embedded`, `gguf:/path/model.gguf` or a Hugging Face folder.

    PackingError when there is none, or it has no chat template or no character offsets.
    """
    # Imported here: it takes seconds, and only packing and training need it.
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    path = gguf_file(spec)
    if path is not None:
        name = "embedded" if spec == "embedded" else path.name
        # AutoTokenizer would parse the whole file twice more to choose this very class.
        loaded = _loaded(
            spec,
            lambda: PreTrainedTokenizerFast.from_pretrained(path.parent, gguf_file=path.name),
        )
    else:
        folder = Path(spec)
        if not folder.is_dir():
            raise PackingError(
                f"no tokenizer at {spec!r}: it is no folder. Give a Hugging Face folder with "
                f"tokenizer.json in it, gguf:/path/model.gguf, or embedded"
            )
        name = folder.resolve().name
        loaded = _loaded(spec, lambda: AutoTokenizer.from_pretrained(folder, local_files_only=True))
    if not loaded.is_fast:
        raise PackingError(
            f"the tokenizer at {spec!r} gives no character offsets (it has no tokenizer.json), and "
            f"the loss mask needs them; convert it to a fast tokenizer first"
        )
    if not isinstance(loaded.chat_template, str):
        found = "several chat templates" if loaded.chat_template else "no chat template"
        raise PackingError(
            f"the tokenizer at {spec!r} has {found}; put the one to train with into "
            f"chat_template.jinja beside its tokenizer.json"
        )
    backend = loaded.backend_tokenizer
    added = backend.get_added_tokens_decoder()
    return ChatTokenizer(
        name,
        backend,
        loaded.chat_template,
        lambda turns, reply_next: str(
            loaded.apply_chat_template(turns, tokenize=False, add_generation_prompt=reply_next)
        ),
        {token: entry.content for token, entry in added.items() if entry.special}
        | dict(zip(loaded.all_special_ids, loaded.all_special_tokens, strict=True)),
        loaded.save_pretrained,
    )


def _loaded(spec: str, load: Callable[[], _Result]) -> _Result:
    try:
        with without_progress_bars():
            return load()
    # What a broken tokenizer raises is the loader's own business: OSError, ValueError, KeyError …
    except Exception as error:
        raise PackingError(
            f"the tokenizer at {spec!r} does not load: {type(error).__name__}: {error}"
        ) from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
