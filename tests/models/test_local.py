from __future__ import annotations

from importlib.util import find_spec

import pytest

from dataforge.errors import UnknownModel
from dataforge.models.specs import open_model, weights_of


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_a_local_model_says_what_to_install() -> None:
    with pytest.raises(UnknownModel, match=r"pip install 'dataforge-dag\[vllm\]'"):
        open_model("vllm:Qwen/Qwen3-8B")


def test_a_local_model_has_its_weights_by_name() -> None:
    assert weights_of("vllm:Qwen/Qwen3-8B") == weights_of("http://h/v1#qwen3-8b")
