"""Packed attention inside a transformers model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from dataforge.errors import TrainingError
from dataforge.kernels.hugging_face import use_packed_attention
from tests.tiny import tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def plain(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def packed(folder: Path) -> PreTrainedModel:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    use_packed_attention(model)
    return model


def row(lengths: list[int]) -> dict[str, Tensor]:
    draws = torch.Generator().manual_seed(sum(lengths))
    return {
        "input_ids": torch.randint(3, 300, (1, sum(lengths)), generator=draws),
        "position_ids": torch.cat([torch.arange(length) for length in lengths])[None],
    }


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=6))
@torch.no_grad()
def test_logits_of_packed_samples_are_those_of_each_alone(
    plain: PreTrainedModel, packed: PreTrainedModel, lengths: list[int]
) -> None:
    inputs = row(lengths)
    together = packed(**inputs, seq_lengths=lengths, use_cache=False).logits
    alone = [plain(ids).logits for ids in torch.split(inputs["input_ids"], lengths, dim=1)]
    torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seq_lengths": None}, "needs the row's boundaries"),
        ({"use_cache": False, "seq_lengths": [3, 6]}, "do not make a row"),
        ({"attention_mask": torch.ones(1, 1, 8, 8), "seq_lengths": [3, 5]}, "no mask"),
    ],
)
def test_a_call_that_would_mix_samples_is_refused(
    packed: PreTrainedModel, wrong: Mapping[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        packed(**row([3, 5]), **wrong)


def test_two_rows_at_once_are_refused(packed: PreTrainedModel) -> None:
    inputs = {name: tensor.repeat(2, 1) for name, tensor in row([3, 5]).items()}
    with pytest.raises(ValueError, match="one row at a time"):
        packed(**inputs, seq_lengths=[3, 5], use_cache=False)


@pytest.mark.parametrize(
    ("twist", "said"),
    [
        ({"softcap": 30.0}, "has softcap"),
        ({"s_aux": torch.zeros(4)}, "has s_aux"),
        ({"sliding_window": 4}, "within 4 tokens and a sample has 5.*--capacity 4"),
    ],
)
def test_attention_that_would_be_computed_wrongly_is_refused(
    packed: PreTrainedModel, twist: Mapping[str, object], said: str
) -> None:
    with pytest.raises(TrainingError, match=said):
        packed(**row([3, 5]), seq_lengths=[3, 5], use_cache=False, **twist)


def test_a_model_with_attention_of_its_own_is_refused(
    packed: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(packed), "_supports_attention_backend", False)
    with pytest.raises(TrainingError, match="would mix packed samples"):
        use_packed_attention(packed)
