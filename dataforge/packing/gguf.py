"""A GGUF file as a Hugging Face folder, which is what trains.

llama.cpp runs a GGUF as it stands, in 4 bits a weight; training wants float32 safetensors, a config
and a tokenizer. The conversion takes seconds and four times the file's size, so it is made once and
kept under `$XDG_CACHE_HOME/dataforge` (or `~/.cache/dataforge`), named by the file's sha256: an
edited file is another file, and a folder that is there is whole.

Dequantising and the names of weights are transformers' own functions; its one-call loader is not
used, since it wants another package, parses the file four times, and returns a model that refuses
to be saved. What the 4 bits lost stays lost: this is a start for training, not the original model.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from dataforge.errors import TrainingError, UnknownModel
from dataforge.models.embedded import smollm2_path
from dataforge.models.weights import file_weights

__all__ = ["gguf_file", "hugging_face_folder", "without_progress_bars"]

_FORMAT = 1
"""Rises when the folders made here change, so that older ones are made again."""


def gguf_file(spec: str) -> Path | None:
    """The GGUF file that `embedded` or `gguf:/path` means; None for any other spec."""
    if spec == "embedded":
        return smollm2_path()
    if not spec.startswith("gguf:"):
        return None
    path = Path(spec.removeprefix("gguf:"))
    if not path.is_file():
        raise UnknownModel(f"no model at {spec!r}: there is no file {path}")
    return path.resolve()


def hugging_face_folder(path: Path, say: Callable[[str], None]) -> Path:
    """The folder that `AutoModelForCausalLM` and `AutoTokenizer` load, made if it is not there.

    TrainingError when the file cannot be converted or the folder cannot be kept.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = file_weights(path).removeprefix("sha256:")
    folder = cache / "dataforge" / "hugging-face" / f"{digest[:32]}-{_FORMAT}"
    if folder.is_dir():
        return folder
    say(f"converting {path.name} to float32 for training, once on this machine")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
            made = Path(beside) / "made"
            made.mkdir()
            _convert(path, made)
            try:
                made.rename(folder)
            except OSError:
                # Another process was quicker, and its folder holds the same.
                if not folder.is_dir():
                    raise
    # What a file that is no model raises is the reader's own business.
    except (OSError, ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise TrainingError(
            f"{path.name} cannot be converted for training: {type(error).__name__}: {error}"
        ) from error
    return folder


def _convert(path: Path, folder: Path) -> None:
    """Writes config, weights and tokenizer of `path` into `folder`."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    with without_progress_bars():
        config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
        # Only names are wanted of it, and the meta device allocates nothing.
        with torch.device("meta"):
            skeleton = AutoModelForCausalLM.from_config(config)
        # Seen without its children, whose names would be mapped 400 times over (half the time).
        names = SimpleNamespace(
            config=config, state_dict=skeleton.state_dict, named_children=lambda: ()
        )
        # It draws a bar that no setting turns off.
        with contextlib.redirect_stderr(io.StringIO()):
            loaded = load_gguf_checkpoint(path, return_tensors=True, model_to_load=names)
        weights = loaded["tensors"]
        tied = set(skeleton.all_tied_weights_keys) if config.tie_word_embeddings else set()
        missing = sorted(set(skeleton.state_dict()) - set(weights) - tied)
        if missing:
            raise TrainingError(
                f"{path.name} lacks weights that a {config.model_type} model needs "
                f"({', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}); "
                f"train from the model's Hugging Face folder instead"
            )
        config.architectures = [type(skeleton).__name__]
        config.dtype = torch.float32
        config.save_pretrained(folder)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        tokenizer = PreTrainedTokenizerFast.from_pretrained(path.parent, gguf_file=path.name)
        tokenizer.save_pretrained(folder)


@contextlib.contextmanager
def without_progress_bars() -> Iterator[None]:
    """Keeps transformers from drawing bars of its own over ours."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
