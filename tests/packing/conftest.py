"""Tokenizers that the packing tests share."""

from __future__ import annotations

import pytest

from dataforge.packing.tokenizer import ChatTokenizer, open_tokenizer
from tests.tiny import tiny_tokenizer


@pytest.fixture(scope="session")
def chatml(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    return open_tokenizer(str(tiny_tokenizer(tmp_path_factory.mktemp("chatml"))))
