"""Opening tokenizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataforge.errors import PackingError, UnknownModel
from dataforge.packing.tokenizer import ChatTokenizer, open_tokenizer
from tests.tiny import CHATML, UNENDED, tiny_tokenizer


def test_text_comes_back_from_its_tokens(chatml: ChatTokenizer) -> None:
    text = "Zwölf Boxkämpfer 🦊 jagen\n\n\tViktor"
    (encoding,) = chatml.encode([text])
    assert chatml.decode(encoding.ids) == text


def test_digests_tell_tokenizers_and_templates_apart(tmp_path: Path) -> None:
    first = open_tokenizer(str(tiny_tokenizer(tmp_path / "a", CHATML)))
    other = open_tokenizer(str(tiny_tokenizer(tmp_path / "b", UNENDED)))
    assert first.digest == other.digest
    assert first.template_digest != other.template_digest
    assert open_tokenizer(str(tmp_path / "a")).template_digest == first.template_digest


def test_a_saved_tokenizer_is_the_same_one(tmp_path: Path, chatml: ChatTokenizer) -> None:
    chatml.save(tmp_path / "saved")
    again = open_tokenizer(str(tmp_path / "saved"))
    assert (again.digest, again.template_digest) == (chatml.digest, chatml.template_digest)


def test_a_tokenizer_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(PackingError, match=r"it is no folder.*or embedded"):
        open_tokenizer("HuggingFaceTB/SmolLM2-135M-Instruct")
    with pytest.raises(UnknownModel, match="there is no file"):
        open_tokenizer(f"gguf:{tmp_path / 'absent.gguf'}")


def test_a_folder_without_a_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(PackingError, match="does not load"):
        open_tokenizer(str(tmp_path))


def test_a_tokenizer_without_a_chat_template_is_said(tmp_path: Path) -> None:
    folder = tiny_tokenizer(tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(PackingError, match="no chat template"):
        open_tokenizer(str(folder))
