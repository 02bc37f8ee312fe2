from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataforge.models.control import breaker, control_tokens
from dataforge.models.embedded import smollm2_path


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(tokens: list[str], kinds: list[int]) -> bytes:
    """The header of a GGUF file: other values of several types, then a vocabulary."""
    pairs = [
        text("general.name") + struct.pack("<I", 8) + text("a model"),
        text("a.switch") + struct.pack("<I?", 7, True),
        text("a.number") + struct.pack("<Id", 12, 0.5),
        text("a.nest") + struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ2h", 3, 2, -1, 7),
        text("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, len(tokens))
        + b"".join(map(text, tokens)),
        text("tokenizer.ggml.token_type")
        + struct.pack(f"<IIQ{len(kinds)}i", 9, 5, len(kinds), *kinds),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def test_control_tokens_and_user_defined_markup_are_found(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    tokens = ["hello", "<|end|>", "<think>", "\n\n", "<0x0A>", "[INST]"]
    path.write_bytes(gguf(tokens, [1, 3, 4, 4, 6, 4]))
    assert control_tokens(path) == ("<think>", "<|end|>", "[INST]")


def test_a_header_that_is_cut_is_said(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    whole = gguf(["<|end|>"], [3])
    for end in range(8, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="header cannot be read"):
            control_tokens(path)


def test_the_bundled_model_s_turns_are_among_its_control_tokens() -> None:
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(control_tokens(smollm2_path()))


@given(st.lists(st.text("<|>ab", max_size=4)), st.text("<|>ab", max_size=30))
def test_no_token_stands_in_a_broken_text_and_nothing_else_is_lost(
    tokens: list[str], written: str
) -> None:
    broken = breaker(tokens)(written)
    assert not any(token in broken for token in tokens if len(token) > 1)
    assert broken.replace("\u200b", "") == written
    if not any(token in written for token in tokens if len(token) > 1):
        assert broken == written
