"""A GGUF made into a Hugging Face folder, on a tiny one written here."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from dataforge.errors import TrainingError, UnknownModel
from dataforge.packing import gguf as converting
from dataforge.packing.gguf import gguf_file, hugging_face_folder
from dataforge.packing.tokenizer import open_tokenizer
from tests.tiny import CHATML, tiny_model

LAYERS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def write_gguf(path: Path, folder: Path, leave_out: str = "") -> None:
    """The tiny model at `folder` as llama.cpp stores it."""
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    special = set(tokenizer.all_special_tokens) | {"<|im_start|>"}
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if token in special else 1 for token, _ in vocabulary])
    stored = json.loads((folder / "tokenizer.json").read_text())
    writer.add_token_merges([" ".join(pair) for pair in stored["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(CHATML)
    weights = {name: weight.detach().numpy() for name, weight in model.state_dict().items()}

    def add(name: str, weight: NDArray[np.float32]) -> None:
        if name != leave_out:
            writer.add_tensor(name, np.ascontiguousarray(weight))

    add("token_embd.weight", weights["model.embed_tokens.weight"])
    add("output_norm.weight", weights["model.norm.weight"])
    for layer in range(config.num_hidden_layers):
        for theirs, ours in LAYERS.items():
            weight = weights[f"model.layers.{layer}.{ours}.weight"]
            heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
            if theirs in heads:
                # llama.cpp rotates pairs of neighbours, transformers the two halves of a head.
                shape = (heads[theirs], 2, weight.shape[0] // heads[theirs] // 2, weight.shape[1])
                weight = weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape)
            add(f"blk.{layer}.{theirs}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dataforge" / "hugging-face"


@torch.no_grad()
def test_the_folder_holds_the_same_model_and_tokenizer(
    tmp_path: Path, folder: Path, cache: Path
) -> None:
    path = tmp_path / "tiny.gguf"
    write_gguf(path, folder)
    said: list[str] = []
    made = hugging_face_folder(path, said.append)
    ids = torch.arange(3, 60)[None]
    first, second = (AutoModelForCausalLM.from_pretrained(place) for place in (folder, made))
    torch.testing.assert_close(second(ids).logits, first(ids).logits, rtol=1e-5, atol=1e-6)
    assert second.config.architectures == ["LlamaForCausalLM"]
    inside, beside = open_tokenizer(f"gguf:{path}"), open_tokenizer(str(made))
    assert (inside.digest, inside.template_digest) == (beside.digest, beside.template_digest)
    text = "<|im_start|>user\nthe cat sat on the mat 🦊<|im_end|>\n"
    original = open_tokenizer(str(folder))
    assert inside.encode([text])[0].ids == original.encode([text])[0].ids
    assert len(said) == 1 and [entry.name for entry in cache.iterdir()] == [made.name]


def test_it_is_made_once_and_again_when_the_file_changes(
    tmp_path: Path, folder: Path, cache: Path
) -> None:
    path = tmp_path / "tiny.gguf"
    write_gguf(path, folder)
    said: list[str] = []
    made = hugging_face_folder(path, said.append)
    assert hugging_face_folder(path, said.append) == made and len(said) == 1
    with path.open("ab") as file:
        file.write(b"\0" * 32)
    assert hugging_face_folder(path, said.append) != made and len(said) == 2


def test_weights_that_are_missing_are_named_and_nothing_is_kept(
    tmp_path: Path, folder: Path, cache: Path
) -> None:
    path = tmp_path / "tiny.gguf"
    write_gguf(path, folder, leave_out="blk.1.attn_v.weight")
    with pytest.raises(TrainingError, match=r"lacks weights.*layers\.1\.self_attn\.v_proj"):
        hugging_face_folder(path, lambda _: None)
    assert list(cache.iterdir()) == []


def test_a_file_that_is_no_gguf_is_said(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_text("hello, this is not a model at all")
    with pytest.raises(TrainingError, match=r"notes\.gguf cannot be converted"):
        hugging_face_folder(path, lambda _: None)


def test_specs_that_mean_a_gguf_file(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    assert gguf_file(f"gguf:{tmp_path / 'm.gguf'}") == tmp_path / "m.gguf"
    assert gguf_file(str(tmp_path)) is None
    with pytest.raises(UnknownModel, match="there is no file"):
        gguf_file("gguf:/nowhere/m.gguf")


def test_bars_of_others_stay_off_only_while_asked() -> None:
    from transformers.utils import logging

    with converting.without_progress_bars():
        assert not logging.is_progress_bar_enabled()
    assert logging.is_progress_bar_enabled()
